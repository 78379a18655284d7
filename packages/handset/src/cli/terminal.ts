import type { Problem } from '../problem.ts';

/** Where a command writes: sentences for people, or one JSON value per line for programs. */
export interface Terminal {
  readonly json: boolean;
  /** A line for people; nothing in JSON mode. */
  say(line: string): void;
  /** Problems for people, errors last so that they stay in sight; a warning that stands since the last call is not said again. Nothing in JSON mode. */
  showProblems(problems: readonly Problem[]): void;
  /** A value for programs, on one line; nothing in normal mode. */
  emit(value: unknown): void;
  /** A problem that ends the command: on stderr for people, on stdout for programs. */
  fail(problem: Problem): void;
}

export interface TerminalStreams {
  readonly stdout: { write(text: string): unknown; readonly isTTY?: boolean };
  readonly stderr: { write(text: string): unknown };
  readonly env: Readonly<Record<string, string | undefined>>;
}

type Paint = (text: string) => string;

export function createTerminal({ stdout, stderr, env }: TerminalStreams, json: boolean): Terminal {
  const colour = !json && !env.NO_COLOR && (stdout.isTTY === true || env.FORCE_COLOR !== undefined);
  const paint = (code: string): Paint => (colour ? (text) => `\u001b[${code}m${text}\u001b[0m` : (text) => text);
  const [red, yellow, dim, green] = [paint('31'), paint('33'), paint('2'), paint('32')];
  const describe = (found: Problem): string => {
    const label = found.severity === 'error' ? red('error') : yellow('warning');
    const lines = [`${label} ${placeOf(found)}${found.message} ${dim(`[${found.code}]`)}`];
    if (found.frame) lines.push(found.frame.replaceAll(/^/gm, '    '));
    lines.push(`  ${green('→')} ${found.remedy}`);
    return lines.join('\n');
  };
  let standing: ReadonlySet<string> = new Set();
  return {
    json,
    say: (line) => {
      if (!json) stdout.write(`${line}\n`);
    },
    showProblems: (problems) => {
      if (json) return;
      const ordered = [...problems].sort((a, b) => Number(a.severity === 'error') - Number(b.severity === 'error'));
      const said = new Set<string>();
      for (const found of ordered) {
        const text = describe(found);
        if (found.severity === 'error' || !standing.has(text)) stdout.write(`${text}\n`);
        said.add(text);
      }
      standing = said;
    },
    emit: (value) => {
      if (json) stdout.write(`${JSON.stringify(value)}\n`);
    },
    fail: (found) => {
      if (json) stdout.write(`${JSON.stringify({ ok: false, problems: [found] })}\n`);
      else stderr.write(`${describe(found)}\n`);
    },
  };
}

function placeOf({ file, line, column }: Problem): string {
  if (file === '') return '';
  return `${file}${line === undefined ? '' : `:${line}`}${line === undefined || column === undefined ? '' : `:${column}`} — `;
}

/** `1 file`, `2 files`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Bytes for people: `512 B`, `1.5 KB`, `2.0 MB`. */
export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  return count < 1024 * 1024 ? `${(count / 1024).toFixed(1)} KB` : `${(count / 1024 / 1024).toFixed(1)} MB`;
}
