import { CliError } from '../cli-error.ts';
import { systemCode } from '../explain.ts';
import { decodeEvents } from '../terminal/event-decoder.ts';
import { harmless, printJson, type Terminal } from '../terminal/terminal.ts';

export interface Answer {
  sessionId: string | undefined;
  /** How to see what the agent printed. */
  remedy: string;
  contentType: string;
  body: AsyncIterable<Uint8Array>;
}

export type AnswerStyle = 'text' | 'raw' | 'json';

/**
 * Writes an agent's answer to stdout as it comes. `text` shows what a person wants to read: the text of streamed events,
 * a JSON string without its quotes, other JSON as it is. `raw` passes the bytes on. `json` prints one document at the end.
 * Rejects with a `CliError` (agentFailed) when the stream carries an error, or breaks off; what came before is shown all the same.
 */
export async function showAnswer(
  terminal: Terminal,
  answer: Answer,
  style: AnswerStyle,
  onFirst: () => void,
): Promise<void> {
  let said: string | undefined;
  let broken: string | undefined;
  const body = announced(answer.body, onFirst, (error) => {
    if (terminal.signal.aborted) throw error;
    broken = `The answer broke off, because the agent or the connection to it ended (${systemCode(error) ?? String(error)}).`;
  });
  const { sessionId, contentType } = answer;
  let output: unknown;
  if (style === 'raw') for await (const chunk of body) await write(terminal, chunk);
  else if (contentType.includes('text/event-stream')) ({ output, said } = await showEvents(terminal, body, style));
  else output = await showWhole(terminal, body, style);
  const error = said ?? broken;
  if (style === 'json') {
    printJson(terminal, { sessionId, contentType, output, ...(error === undefined ? {} : { error }) });
  }
  if (error === undefined) return;
  const message = said === undefined ? error : `The agent failed while it answered: ${harmless(said)}`;
  throw new CliError('agentFailed', message, answer.remedy);
}

async function showWhole(terminal: Terminal, body: AsyncIterable<Uint8Array>, style: AnswerStyle): Promise<unknown> {
  const bytes: Uint8Array[] = [];
  for await (const chunk of body) bytes.push(chunk);
  const text = Buffer.concat(bytes).toString('utf8');
  const value = parsed(text);
  if (style === 'text') await write(terminal, `${typeof value === 'string' ? harmless(value) : text}\n`);
  return value;
}

async function showEvents(
  terminal: Terminal,
  body: AsyncIterable<Uint8Array>,
  style: AnswerStyle,
): Promise<{ output: unknown[]; said: string | undefined }> {
  const output: unknown[] = [];
  let said: string | undefined;
  let column = 0;
  for await (const { event, data } of decodeEvents(body)) {
    const value = parsed(data);
    if (event === 'error') said = messageIn(value);
    else if (style === 'json') output.push(value);
    else {
      const text = typeof value === 'string' ? harmless(value) : `${column > 0 ? '\n' : ''}${JSON.stringify(value)}\n`;
      await write(terminal, text);
      column = text === '' ? column : text.endsWith('\n') ? 0 : 1;
    }
  }
  if (column > 0) await write(terminal, '\n');
  return { output, said };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function messageIn(value: unknown): string {
  const field = typeof value === 'object' && value !== null ? Reflect.get(value, 'error') : undefined;
  return typeof field === 'string' ? field : typeof value === 'string' ? value : JSON.stringify(value);
}

/** The body up to its end, or to where it breaks; `onBreak` may throw. */
async function* announced(
  body: AsyncIterable<Uint8Array>,
  onFirst: () => void,
  onBreak: (error: unknown) => void,
): AsyncGenerator<Uint8Array> {
  let first = true;
  try {
    for await (const chunk of body) {
      if (first) onFirst();
      first = false;
      yield chunk;
    }
  } catch (error) {
    onBreak(error);
  }
}

async function write(terminal: Terminal, chunk: string | Uint8Array): Promise<void> {
  if (terminal.stdout.write(chunk)) return;
  await new Promise<void>((resolve) => terminal.stdout.once('drain', () => resolve()));
}
