import { isCancel, password, select, text } from '@clack/prompts';
import { CliError } from '../cli-error.ts';
import type { Terminal } from './terminal.ts';

/** Asks for a line of text on stderr; an empty one means `initial`, which is shown. Rejects with a `CliError` (interrupted) at Ctrl-C. */
export async function askText(
  terminal: Terminal,
  message: string,
  initial: string,
  check: (value: string) => string | undefined,
): Promise<string> {
  const answer = await text({
    message,
    placeholder: initial,
    defaultValue: initial,
    validate: (value) => check(value || initial),
    input: terminal.stdin,
    output: terminal.stderr,
  });
  return unlessCancelled(answer);
}

/** Asks for something that is not shown while it is typed. Rejects with a `CliError` (interrupted) at Ctrl-C. */
export async function askSecret(terminal: Terminal, message: string): Promise<string> {
  const validate = (value: string | undefined): string | undefined => (value ? undefined : 'It cannot be empty.');
  return unlessCancelled(await password({ message, validate, input: terminal.stdin, output: terminal.stderr }));
}

/** Asks for one of the choices on stderr. Rejects with a `CliError` (interrupted) at Ctrl-C. */
export async function askChoice(
  terminal: Terminal,
  message: string,
  choices: { value: string; label: string }[],
): Promise<string> {
  return unlessCancelled(await select({ message, options: choices, input: terminal.stdin, output: terminal.stderr }));
}

function unlessCancelled(answer: string | symbol): string {
  if (isCancel(answer) || typeof answer === 'symbol') throw new CliError('interrupted', 'Nothing was done.');
  return answer;
}
