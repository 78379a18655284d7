/**
 * What a template in Jade's older syntax is in Pug's, line by line: `!!! 5`, scripts and styles whose text needs no dot, and
 * `#{…}` inside attributes. Lines keep their numbers.
 */
export function fromOldJade(text: string): string {
  const lines = text.split('\n');
  let raw: number | undefined;
  for (const [index, line] of lines.entries()) {
    if (line.trim() === '') continue;
    const depth = indentOf(line);
    // The text of a script, a comment or a block of text is nobody's markup.
    if (raw !== undefined && depth > raw) continue;
    raw = undefined;
    if (/^!!!/.test(line))
      lines[index] = line.replace(/^!!!\s*(5|html)?\s*/, (_all, kind) => `doctype ${kind ? 'html' : ''}`);
    if (/^\s*(\/\/|:\w)/.test(line) || /\.\s*$/.test(line)) raw = depth;
    const tag = /^\s*(?:(?:script|style)\b|[\w#.-]+(?=\())/.exec(line)?.[0];
    if (tag === undefined) continue;
    const end = endOfTag(lines, index, tag.length);
    if (!end) continue;
    for (let at = index; at <= end.line; at += 1) lines[at] = interpolated(lines[at] ?? '');
    if (!/^\s*(script|style)\b/.test(tag)) continue;
    if (!isText(lines, end.line + 1, depth)) continue;
    if (/^\s*$/.test(end.rest)) lines[end.line] = `${(lines[end.line] ?? '').trimEnd()}.`;
    raw = depth;
  }
  return lines.join('\n');
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** Where a tag with its attributes ends, and what follows it on that line; undefined if they never close. */
function endOfTag(lines: readonly string[], first: number, from: number): { line: number; rest: string } | undefined {
  let column = from;
  if (lines[first]?.[column] !== '(') return { line: first, rest: lines[first]?.slice(column) ?? '' };
  let depth = 0;
  let quote = '';
  for (let line = first; line < lines.length; line += 1) {
    const text = lines[line] ?? '';
    for (; column < text.length; column += 1) {
      const sign = text.charAt(column);
      if (quote) {
        if (sign === '\\') column += 1;
        else if (sign === quote) quote = '';
      } else if (sign === '"' || sign === "'") quote = sign;
      else if ('([{'.includes(sign)) depth += 1;
      else if (')]}'.includes(sign)) {
        depth -= 1;
        if (depth === 0) return { line, rest: text.slice(column + 1) };
      }
    }
    column = 0;
  }
  return undefined;
}

/** Whether what stands below a script or a style is its text, and not markup that puts text there. */
function isText(lines: readonly string[], from: number, depth: number): boolean {
  const first = lines.slice(from).find((line) => line.trim() !== '');
  if (first === undefined || indentOf(first) <= depth) return false;
  return !/^\s*(include\b|block\b|[|=-]|!=|:\w)/.test(first);
}

/** `"a#{b}c"` as `"a" + (b) + "c"`. */
function interpolated(line: string): string {
  return line.replace(/(["'])((?:\\.|(?!\1)[^\\])*)\1/g, (all, quote: string, text: string) => {
    if (!text.includes('#{')) return all;
    const sum = text.replace(/#\{([^}]*)\}/g, (_all, expression: string) => `${quote} + (${expression}) + ${quote}`);
    return `(${quote}${sum}${quote})`;
  });
}
