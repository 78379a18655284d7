import { CliError } from '../cli-error.ts';
import { decodeEvents } from '../terminal/event-decoder.ts';
import { harmless, printJson, type Terminal } from '../terminal/terminal.ts';

export interface Answer {
  sessionId: string | undefined;
  contentType: string;
  body: AsyncIterable<Uint8Array>;
}

export type AnswerStyle = 'text' | 'raw' | 'json';

/**
 * Writes an agent's answer to stdout as it comes. `text` shows what a person wants to read: the text of streamed events,
 * a JSON string without its quotes, other JSON as it is. `raw` passes the bytes on. `json` prints one document at the end.
 * Rejects with a `CliError` (agentFailed) when the stream carries an error.
 */
export async function showAnswer(
  terminal: Terminal,
  answer: Answer,
  style: AnswerStyle,
  onFirst: () => void,
): Promise<void> {
  const body = announced(answer.body, onFirst);
  if (style === 'raw') {
    for await (const chunk of body) await write(terminal, chunk);
    return;
  }
  if (answer.contentType.includes('text/event-stream')) return showEvents(terminal, answer, body, style);
  const bytes: Uint8Array[] = [];
  for await (const chunk of body) bytes.push(chunk);
  const text = Buffer.concat(bytes).toString('utf8');
  const value = parsed(text);
  if (style === 'json')
    printJson(terminal, { sessionId: answer.sessionId, contentType: answer.contentType, output: value });
  else await write(terminal, `${typeof value === 'string' ? harmless(value) : text}\n`);
}

async function showEvents(
  terminal: Terminal,
  answer: Answer,
  body: AsyncIterable<Uint8Array>,
  style: AnswerStyle,
): Promise<void> {
  const output: unknown[] = [];
  let failure: string | undefined;
  let column = 0;
  for await (const { event, data } of decodeEvents(body)) {
    const value = parsed(data);
    if (event === 'error') failure = messageIn(value);
    else if (style === 'json') output.push(value);
    else {
      const text = typeof value === 'string' ? harmless(value) : `${column > 0 ? '\n' : ''}${JSON.stringify(value)}\n`;
      await write(terminal, text);
      column = text === '' ? column : text.endsWith('\n') ? 0 : 1;
    }
  }
  if (style === 'json') {
    const { sessionId, contentType } = answer;
    printJson(terminal, { sessionId, contentType, output, ...(failure === undefined ? {} : { error: failure }) });
  } else if (column > 0) await write(terminal, '\n');
  if (failure !== undefined) {
    throw new CliError(
      'agentFailed',
      `The agent failed while it answered: ${harmless(failure)}`,
      'See what it printed with: agentcore logs',
    );
  }
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

async function* announced(body: AsyncIterable<Uint8Array>, onFirst: () => void): AsyncGenerator<Uint8Array> {
  let first = true;
  for await (const chunk of body) {
    if (first) onFirst();
    first = false;
    yield chunk;
  }
}

async function write(terminal: Terminal, chunk: string | Uint8Array): Promise<void> {
  if (terminal.stdout.write(chunk)) return;
  await new Promise<void>((resolve) => terminal.stdout.once('drain', () => resolve()));
}
