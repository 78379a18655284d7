import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { note, styled, type Terminal } from '../terminal/terminal.ts';
import { type CodeRunner, type Language, runCode } from './code-run.ts';

const HISTORY_LINES = 1000;

/** Asks for code until the input ends. A line that opens a block (`:`, `{`, `(`, `[` at its end) is followed by more until an empty line. */
export async function codePrompt(terminal: Terminal, runner: CodeRunner, language: Language): Promise<void> {
  const file = join(terminal.home, '.agentplatform', 'code-history');
  const history = (await readFile(file, 'utf8').catch(() => '')).split('\n').filter(Boolean);
  const tty = Boolean(terminal.stdin.isTTY);
  const input = createInterface({
    input: terminal.stdin,
    output: terminal.stderr,
    terminal: tty,
    history: history.toReversed(),
    historySize: HISTORY_LINES,
    signal: terminal.signal,
  });
  note(terminal, styled(terminal, 'stderr', 'dim', `${language}; an empty line runs a block, Ctrl-D ends`));
  const lines: string[] = [];
  let over = false;
  input.once('close', () => {
    over = true;
  });
  const ask = (): void => {
    // Lines may be left to run after the input has ended.
    if (over) return;
    input.setPrompt(tty ? (lines.length > 0 ? '... ' : '>>> ') : '');
    input.prompt();
  };
  // What reads the lines is told of it.
  input.once('error', () => undefined);
  try {
    ask();
    for await (const line of input) {
      if (line.trim() !== '') {
        history.push(line);
        lines.push(line);
      }
      const open = lines.length > 1 || /[:{([\\,]\s*$/.test(line);
      if (lines.length > 0 && !(open && line.trim() !== '')) await run(terminal, runner, language, lines.splice(0));
      ask();
    }
    if (lines.length > 0) await run(terminal, runner, language, lines);
  } finally {
    input.close();
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(file, `${history.slice(-HISTORY_LINES).join('\n')}\n`, { mode: 0o600 });
  }
}

async function run(terminal: Terminal, runner: CodeRunner, language: Language, lines: string[]): Promise<void> {
  const { pictures } = await runCode(terminal, runner, { language, code: lines.join('\n'), quiet: false });
  for (const file of pictures) note(terminal, styled(terminal, 'stderr', 'dim', `saved ${file}`));
}
