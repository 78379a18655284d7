/**
 * Whether a URI can be one of a template (RFC 6570): all that the template says in so many words is in it, in that order, the first at its beginning
 * and the last at its end. In linear time: templates and URIs are strangers'.
 */
export function fits(template: string, uri: string): boolean {
  const words = template.split(/\{[^{}]*\}/);
  const [first = '', ...rest] = words;
  const last = rest.pop();
  if (last === undefined) return template === uri;
  if (!uri.startsWith(first)) return false;
  let at = first.length;
  for (const word of rest) {
    const found = uri.indexOf(word, at);
    if (found < 0) return false;
    at = found + word.length;
  }
  return uri.length - last.length >= at && uri.endsWith(last);
}
