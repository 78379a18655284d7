import { text } from 'node:stream/consumers';
import { CliError } from '../cli-error.ts';
import { askSecret } from '../terminal/ask.ts';
import { isInteractive, type Terminal } from '../terminal/terminal.ts';

/**
 * A secret from a prompt that does not show it, or from standard input. Never from an argument: the list of processes and the history of the
 * shell show those. `usage`: the command line that gives it. Rejects with a `CliError` (usage) when there is none.
 */
export async function readSecret(terminal: Terminal, what: string, usage: string): Promise<string> {
  if (isInteractive(terminal)) return askSecret(terminal, what);
  // An editor or echo leaves a line end behind, which is no part of it.
  const value = (await text(terminal.stdin)).replace(/\r?\n$/, '');
  if (value === '') throw new CliError('usage', 'The value on standard input is empty.', usage);
  return value;
}
