const CONTEXT_LINES = 2;
const MAX_LINE_LENGTH = 120;

/** The lines around `line` (1-based) with a marker below `column` (1-based), ready to print; undefined if out of range. */
export function codeFrame(text: string, line: number | undefined, column?: number): string | undefined {
  if (line === undefined) return undefined;
  const lines = text.split(/\r\n|\r|\n/);
  if (line < 1 || line > lines.length) return undefined;
  const first = Math.max(1, line - CONTEXT_LINES);
  const last = Math.min(lines.length, line + CONTEXT_LINES);
  const width = String(last).length;
  const out: string[] = [];
  for (let n = first; n <= last; n += 1) {
    const content = (lines[n - 1] ?? '').replaceAll('\t', ' ');
    const shown = content.length > MAX_LINE_LENGTH ? `${content.slice(0, MAX_LINE_LENGTH - 1)}…` : content;
    out.push(`${n === line ? '>' : ' '} ${String(n).padStart(width)} | ${shown}`.trimEnd());
    if (n === line && column !== undefined && column >= 1 && column <= MAX_LINE_LENGTH) {
      out.push(`  ${' '.repeat(width)} | ${' '.repeat(column - 1)}^`);
    }
  }
  return out.join('\n');
}
