import { buffer } from 'node:stream/consumers';
import { CliError } from '../cli-error.ts';
import type { Terminal } from '../terminal/terminal.ts';

/**
 * The bytes to send: the argument, standard input when the argument is `-` or missing with something piped in, or
 * `{"prompt": …}` of --prompt. Rejects with a `CliError` (usage) when that is no JSON.
 */
export async function readPayload(
  terminal: Terminal,
  argument: string | undefined,
  prompt: string | undefined,
): Promise<Buffer> {
  if (prompt !== undefined) {
    if (argument !== undefined) throw new CliError('usage', 'Give either a payload or --prompt, not both.');
    return Buffer.from(JSON.stringify({ prompt }));
  }
  if (argument === undefined && terminal.stdin.isTTY) {
    throw new CliError(
      'usage',
      'What shall be sent?',
      `Give a payload: agentcore invoke '{"prompt":"hi"}', or: agentcore invoke --prompt hi`,
    );
  }
  const bytes = argument === undefined || argument === '-' ? await buffer(terminal.stdin) : Buffer.from(argument);
  const text = bytes.toString('utf8');
  try {
    JSON.parse(text);
  } catch (error) {
    if (text.trim() === '')
      throw new CliError('usage', 'The payload is empty.', `Give one: agentcore invoke '{"prompt":"hi"}'`);
    throw new CliError(
      'usage',
      `The payload is not valid JSON: ${error instanceof Error ? error.message : error}`,
      remedyFor(text),
    );
  }
  return bytes;
}

function remedyFor(text: string): string {
  if (/^\s*[[{]/.test(text)) return `Quote it for the shell: agentcore invoke '{"prompt":"hi"}'`;
  return `For plain words: agentcore invoke --prompt ${JSON.stringify(text.trim().slice(0, 60))}`;
}
