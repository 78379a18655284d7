import { CommanderError, type CommandUnknownOpts } from '@commander-js/extra-typings';
import { CliError } from './cli-error.ts';
import { type ExitReason, exitCodes } from './exit-codes.ts';
import { explain } from './explain.ts';
import { type ConnectionFlags, findConnection } from './platform/connection.ts';
import { createProgram } from './program.ts';
import { harmless, note, styled, type Terminal, typed } from './terminal/terminal.ts';

/** Runs one command line (without node and script) and resolves with its exit status. Never rejects. */
export async function run(terminal: Terminal, args: string[]): Promise<number> {
  const program = createProgram(terminal);
  const json = args.includes('--json');
  prepare(program, terminal, json);
  let flags: ConnectionFlags = {};
  program.hook('preAction', (_, action) => {
    flags = action.opts();
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCodes.ok.status;
  } catch (error) {
    if (error instanceof CommanderError) {
      // What was wrong is written already; help and version end with 0.
      return error.exitCode === 0 ? exitCodes.ok.status : exitCodes.usage.status;
    }
    if (terminal.signal.aborted) return exitCodes.interrupted.status;
    // Of what is explained already the address is not asked.
    const connection =
      error instanceof CliError ? undefined : await findConnection(terminal, flags).catch(() => undefined);
    return report(terminal, error, connection?.endpoint, args);
  }
}

// Settings that commander does not hand down to commands that were added ready-made.
function prepare(command: CommandUnknownOpts, terminal: Terminal, json: boolean): void {
  command.exitOverride();
  command.showSuggestionAfterError();
  command.configureOutput({
    writeOut: (text) => void terminal.stdout.write(text),
    writeErr: (text) => void terminal.stderr.write(text),
    outputError: (text, write) => {
      const remedy = typed(terminal, `See: ${pathOf(command)} --help`);
      const message = text.trimEnd();
      write(`${json ? failureLine('usage', message.replace(/^error: /, ''), remedy) : `${message}\n${remedy}`}\n`);
    },
  });
  for (const member of command.commands) prepare(member, terminal, json);
}

function report(terminal: Terminal, error: unknown, endpoint: string | undefined, args: string[]): number {
  const { reason, message, ...more } = explain(error, endpoint);
  const remedy = more.remedy && typed(terminal, more.remedy);
  const { status } = exitCodes[reason];
  if (args.includes('--json')) {
    note(terminal, failureLine(reason, message, remedy));
  } else {
    const label = reason === 'interrupted' ? '' : `${styled(terminal, 'stderr', 'red', 'error:')} `;
    note(terminal, `${label}${harmless(message)}`);
    if (remedy) note(terminal, harmless(remedy));
  }
  if (args.includes('--debug')) note(terminal, debugText(error));
  return status satisfies (typeof exitCodes)[ExitReason]['status'];
}

/** A failure for programs. */
function failureLine(reason: ExitReason, message: string, remedy: string | undefined): string {
  return JSON.stringify({ error: { reason, message, remedy, exitStatus: exitCodes[reason].status } });
}

function debugText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? '' : `\ncaused by ${debugText(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}

function pathOf(command: CommandUnknownOpts): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}
