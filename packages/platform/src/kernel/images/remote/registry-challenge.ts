/** One scheme that a 401 offers (RFC 9110 section 11.3); parameter names are lower-case. */
export interface Challenge {
  scheme: string;
  parameters: Record<string, string>;
}

const LONGEST = 16 * 1024;

/** Reads a `WWW-Authenticate` value; what does not parse is left out. Never throws. */
export function parseChallenges(header: string): Challenge[] {
  const text = header.slice(0, LONGEST);
  const token = /[\s,]*([A-Za-z0-9!#$%&'*+.^_`|~-]+)[ \t]*/y;
  const value = /=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))/y;
  const challenges: Challenge[] = [];
  for (let at = 0; at < text.length; ) {
    token.lastIndex = at;
    const name = token.exec(text);
    if (!name?.[1]) break;
    at = token.lastIndex;
    value.lastIndex = at;
    const found = value.exec(text);
    if (!found) {
      challenges.push({ scheme: name[1].toLowerCase(), parameters: {} });
      continue;
    }
    at = value.lastIndex;
    const last = challenges.at(-1);
    const content = found[1] === undefined ? (found[2] ?? '') : found[1].replaceAll(/\\(.)/g, '$1');
    if (last) last.parameters[name[1].toLowerCase()] = content;
  }
  return challenges;
}
