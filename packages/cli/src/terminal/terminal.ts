import { stripVTControlCharacters, styleText } from 'node:util';

/** The outside of a command: where it writes, what it reads, where it stands. Tests and `main.ts` make one. */
export interface Terminal {
  stdin: NodeJS.ReadStream;
  stdout: NodeJS.WriteStream;
  stderr: NodeJS.WriteStream;
  env: Record<string, string | undefined>;
  cwd: string;
  home: string;
  /** Aborts at Ctrl-C and SIGTERM. */
  signal: AbortSignal;
}

/** Results go to stdout, as a line. */
export function print(terminal: Terminal, line: string): void {
  terminal.stdout.write(`${line}\n`);
}

/** Results for programs: one JSON document on stdout. */
export function printJson(terminal: Terminal, value: unknown): void {
  terminal.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}

/** Everything that is not the result goes to stderr, so that stdout pipes cleanly. */
export function note(terminal: Terminal, line: string): void {
  terminal.stderr.write(`${line}\n`);
}

/** What this program is called on the user's command line: who started it with npx has no `agentcore` on the PATH. */
export function programName({ env }: Pick<Terminal, 'env'>): string {
  return env.npm_command === 'exec' ? 'npx agentcore' : 'agentcore';
}

/** `text` with the commands in it as this user types them. */
export function typed(terminal: Terminal, text: string): string {
  return text.replace(/\bagentcore (?=[a-z-])/g, `${programName(terminal)} `);
}

/** Whether questions can be asked: a person at both ends. */
export function isInteractive(terminal: Terminal): boolean {
  return Boolean(terminal.stdin.isTTY && terminal.stderr.isTTY) && !terminal.env.CI;
}

type Style = Parameters<typeof styleText>[0];

/** `text` in that style where the stream shows colours (a terminal, and NO_COLOR is not set). */
export function styled(terminal: Terminal, stream: 'stdout' | 'stderr', style: Style, text: string): string {
  const coloured = terminal[stream].isTTY && !terminal.env.NO_COLOR && terminal.env.TERM !== 'dumb';
  return coloured ? styleText(style, text, { validateStream: false }) : text;
}

/** Lines of aligned columns; the first row is the heading. */
export function columns(rows: string[][]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, cell.length);
    });
  }
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** Text that came from elsewhere, made safe for a terminal: no escape sequences, no control characters but tab and newline. */
export function harmless(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
  return stripVTControlCharacters(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '');
}
