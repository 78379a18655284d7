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

/**
 * Several secrets by name: each from a prompt, or all as a JSON object from standard input. Rejects with a `CliError` (usage), which quotes no
 * value, when one is missing or there is another.
 */
export async function readSecrets(terminal: Terminal, names: string[], usage: string): Promise<Record<string, string>> {
  if (isInteractive(terminal)) {
    const given: Record<string, string> = {};
    for (const name of names) given[name] = await askSecret(terminal, name);
    return given;
  }
  const wanted = `Standard input must be a JSON object with a string for each of: ${names.join(', ')}.`;
  const given = jsonObject(await text(terminal.stdin)) ?? {};
  const found = names.flatMap((name) => {
    const value = given[name];
    return typeof value === 'string' && value !== '' ? [[name, value] as const] : [];
  });
  if (found.length !== names.length || Object.keys(given).length !== names.length)
    throw new CliError('usage', wanted, usage);
  return Object.fromEntries(found);
}

function jsonObject(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
