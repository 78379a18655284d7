import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { messageOf } from './request-error.ts';

/** Whether a handler's result is to be streamed: an async iterable (generator, ReadableStream, Readable) or a plain generator. */
export function isStream(value: unknown): value is AsyncIterable<unknown> | Iterable<unknown> {
  if (typeof value !== 'object' || value === null) return false;
  if (Symbol.asyncIterator in value) return true;
  return Symbol.iterator in value && 'next' in value && typeof value.next === 'function';
}

/** One server-sent event; `data` is JSON, so a text chunk keeps its line breaks. */
export function encodeEvent(data: unknown, event?: string): string {
  return `${event ? `event: ${event}\n` : ''}data: ${JSON.stringify(data) ?? 'null'}\n\n`;
}

/**
 * Writes each chunk as one event and waits while the socket is full. Ends early, telling the source by `return()`, when
 * `signal` aborts. A source that throws ends the stream with `event: error`; the error is then given to `onError`. Rejects,
 * before anything is sent, when the source cannot be read at all.
 */
export async function sendEvents(
  response: ServerResponse,
  source: AsyncIterable<unknown> | Iterable<unknown>,
  signal: AbortSignal,
  onError: (error: unknown) => void,
): Promise<void> {
  const iterator =
    Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : (source[Symbol.iterator]() as Iterator<unknown>);
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  response.flushHeaders();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const step = await nextUnlessAborted(iterator, signal);
      if (step === 'aborted') break;
      if (step.done) {
        response.end();
        return;
      }
      const chunk = step.value instanceof Uint8Array ? decoder.decode(step.value, { stream: true }) : step.value;
      if (chunk === '') continue;
      if (!response.write(encodeEvent(chunk))) await drained(response, signal);
    }
  } catch (error) {
    if (!signal.aborted) response.write(encodeEvent({ error: messageOf(error) }, 'error'));
    onError(error);
  }
  response.end();
  // Not awaited: a generator that hangs in its own await would hold us; its end is its own affair.
  Promise.resolve(iterator.return?.()).catch(onError);
}

// A listener a chunk instead of one promise raced again and again: a promise keeps what each race resolved with.
function nextUnlessAborted(
  iterator: AsyncIterator<unknown> | Iterator<unknown>,
  signal: AbortSignal,
): Promise<IteratorResult<unknown> | 'aborted'> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return resolve('aborted');
    const onAbort = (): void => resolve('aborted');
    signal.addEventListener('abort', onAbort, { once: true });
    const settle = (): void => signal.removeEventListener('abort', onAbort);
    Promise.resolve(iterator.next()).then(resolve, reject).finally(settle);
  });
}

async function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  await once(response, 'drain', { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
