/** One server-sent event. */
export interface ServerEvent {
  /** `message` when the stream names none. */
  event: string;
  data: string;
}

/** Decodes a `text/event-stream` (WHATWG HTML, "Interpreting an event stream"), whatever the chunk borders. An unfinished event at the end is dropped. */
export async function* decodeEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  let event = '';
  let data: string[] = [];
  for await (const line of linesOf(chunks)) {
    if (line === '') {
      if (data.length > 0) yield { event: event || 'message', data: data.join('\n') };
      event = '';
      data = [];
      continue;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'data') data.push(value);
    else if (field === 'event') event = value;
  }
}

/** The complete lines of a UTF-8 stream; CR, LF and CRLF all end one. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    rest += decoder.decode(chunk, { stream: true });
    // A CR at the very end may be half of a CRLF: it waits for the next chunk.
    const parts = rest.split(/\r\n|\n|\r(?!$)/);
    rest = parts.pop() ?? '';
    yield* parts;
  }
  rest += decoder.decode();
  if (rest.endsWith('\r')) yield rest.slice(0, -1);
  else if (rest !== '') yield rest;
}
