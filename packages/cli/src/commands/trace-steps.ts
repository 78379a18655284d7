import { once } from 'node:events';
import { CliError } from '../cli-error.ts';
import { harmless, type Terminal } from '../terminal/terminal.ts';
import { textIn } from './iam-request.ts';
import { spanLine, type TraceLine } from './trace-text.ts';

/** Which step is looked at, and whether it is open. */
interface View {
  at: number;
  open: boolean;
  done: boolean;
}

const KEYS: Readonly<Record<string, (view: View, count: number) => View>> = {
  j: (view, count) => ({ ...view, at: Math.min(count - 1, view.at + 1), open: false }),
  k: (view) => ({ ...view, at: Math.max(0, view.at - 1), open: false }),
  g: (view) => ({ ...view, at: 0, open: false }),
  G: (view, count) => ({ ...view, at: count - 1, open: false }),
  '\r': (view) => ({ ...view, open: !view.open }),
  q: (view) => ({ ...view, done: true }),
};
const SAME: Readonly<Record<string, string>> = {
  '\u001b[B': 'j',
  '\u001b[A': 'k',
  ' ': '\r',
  '\n': '\r',
  '\u0003': 'q',
  '\u0004': 'q',
};
const MOST_CONTENT = 4_000;

/** Shows the steps of a trace, one of them chosen by the keyboard, with its input and output when it is open. Rejects with a `CliError` (usage) without a terminal. */
export async function stepThrough({ stdin, stdout, signal }: Terminal, lines: readonly TraceLine[]): Promise<void> {
  if (!stdin.isTTY || !stdout.isTTY)
    throw new CliError('usage', '--steps needs a terminal.', 'Leave it out to print the tree.');
  let view: View = { at: 0, open: false, done: lines.length === 0 };
  stdin.setRawMode(true);
  stdin.setEncoding('utf8');
  try {
    // A screen of its own, so that what was there before comes back.
    stdout.write('\u001b[?1049h\u001b[?25l');
    while (!view.done && !signal.aborted) {
      stdout.write(`\u001b[2J\u001b[H${screen(lines, view, { rows: stdout.rows, columns: stdout.columns })}`);
      const [key] = (await once(stdin, 'data', { signal })) as [string];
      view = (KEYS[SAME[key] ?? key] ?? ((same: View) => same))(view, lines.length);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    stdout.write('\u001b[?25h\u001b[?1049l');
    stdin.setRawMode(false);
    stdin.pause();
  }
}

/** What the screen shows: the steps around the chosen one, and of that one what went in and came out. */
export function screen(
  lines: readonly TraceLine[],
  { at, open }: Pick<View, 'at' | 'open'>,
  { rows, columns }: { rows: number; columns: number },
): string {
  const detail = open ? contentOf(lines[at]?.span, columns).slice(0, Math.max(0, rows - 4)) : [];
  const room = Math.max(1, rows - 2 - detail.length);
  const from = Math.max(0, Math.min(at - Math.floor(room / 2), lines.length - room));
  const shown = lines.slice(from, from + room).map((line, index) => {
    const text = spanLine(line).slice(0, Math.max(1, columns - 3));
    return from + index === at ? `\u001b[7m> ${text}\u001b[0m` : `  ${text}`;
  });
  const place = from + shown.length > at ? at - from + 1 : shown.length;
  const keys = `step ${at + 1} of ${lines.length}   j/k: move   Enter: input and output   q: end`;
  return [...shown.slice(0, place), ...detail, ...shown.slice(place), '', keys.slice(0, columns)].join('\r\n');
}

function contentOf(span: unknown, columns: number): string[] {
  const width = Math.max(10, columns - 6);
  const part = (heading: string, text: string): string[] =>
    text === ''
      ? []
      : [`    ${heading}:`, ...wrapped(harmless(text.slice(0, MOST_CONTENT)), width).map((line) => `      ${line}`)];
  const found = [...part('input', textIn(span, 'input')), ...part('output', textIn(span, 'output'))];
  return found.length > 0 ? found : ['    (no input or output was stored)'];
}

function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const line of text.split('\n'))
    for (let at = 0; at === 0 || at < line.length; at += width) lines.push(line.slice(at, at + width));
  return lines;
}
