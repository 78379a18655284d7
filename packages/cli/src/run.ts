import { CommanderError, type CommandUnknownOpts } from '@commander-js/extra-typings';
import { type ExitReason, exitCodes } from './exit-codes.ts';
import { explain } from './explain.ts';
import { createProgram } from './program.ts';
import { harmless, note, styled, type Terminal } from './terminal/terminal.ts';

/** Runs one command line (without node and script) and resolves with its exit status. Never rejects. */
export async function run(terminal: Terminal, args: string[]): Promise<number> {
  const program = createProgram(terminal);
  prepare(program, terminal);
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCodes.ok.status;
  } catch (error) {
    if (error instanceof CommanderError) {
      // Commander has written its own message; help and version end with 0.
      return error.exitCode === 0 ? exitCodes.ok.status : exitCodes.usage.status;
    }
    return report(terminal, error, args);
  }
}

// Settings that commander does not hand down to commands that were added ready-made.
function prepare(command: CommandUnknownOpts, terminal: Terminal): void {
  command.exitOverride();
  command.showSuggestionAfterError();
  command.configureOutput({
    writeOut: (text) => void terminal.stdout.write(text),
    writeErr: (text) => void terminal.stderr.write(text),
    outputError: (text, write) => write(`${text.trimEnd()}\nSee: ${pathOf(command)} --help\n`),
  });
  for (const member of command.commands) prepare(member, terminal);
}

function report(terminal: Terminal, error: unknown, args: string[]): number {
  if (terminal.signal.aborted) {
    return exitCodes.interrupted.status;
  }
  const { reason, message, remedy } = explain(error);
  const { status } = exitCodes[reason];
  if (args.includes('--json')) {
    note(terminal, JSON.stringify({ error: { reason, message, remedy, exitStatus: status } }));
  } else {
    const label = reason === 'interrupted' ? '' : `${styled(terminal, 'stderr', 'red', 'error:')} `;
    note(terminal, `${label}${harmless(message)}`);
    if (remedy) note(terminal, harmless(remedy));
  }
  if (args.includes('--debug')) note(terminal, debugText(error));
  return status satisfies (typeof exitCodes)[ExitReason]['status'];
}

function debugText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? '' : `\ncaused by ${debugText(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}

function pathOf(command: CommandUnknownOpts): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}
