import type { IncomingMessage, ServerResponse } from 'node:http';

/** What the pages that are open in a browser are told. */
export type LiveEvent =
  | { readonly type: 'hello'; readonly build: number }
  | { readonly type: 'reload'; readonly build: number }
  | { readonly type: 'css'; readonly build: number; readonly files: readonly string[] }
  | { readonly type: 'problems'; readonly problems: readonly unknown[] };

/** Server-sent events to every open page. */
export interface LiveEvents {
  /** Answer a request with a stream; `greeting` is sent first. Refuses with 503 when too many pages are open. */
  connect(request: IncomingMessage, response: ServerResponse, greeting: readonly LiveEvent[]): void;
  send(event: LiveEvent): void;
  close(): void;
}

const MAX_STREAMS = 64;
const HEARTBEAT_MS = 15_000;

export function createLiveEvents(): LiveEvents {
  const streams = new Set<ServerResponse>();
  const heartbeat = setInterval(() => {
    for (const stream of streams) stream.write(': still here\n\n');
  }, HEARTBEAT_MS);
  heartbeat.unref();
  return {
    connect(request, response, greeting) {
      if (streams.size >= MAX_STREAMS) {
        response.writeHead(503, { 'content-type': 'text/plain; charset=utf-8' });
        response.end(`${MAX_STREAMS} pages are open already; close one.\n`);
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
      response.write('retry: 500\n\n');
      for (const event of greeting) response.write(encode(event));
      streams.add(response);
      request.on('close', () => streams.delete(response));
    },
    send(event) {
      for (const stream of streams) stream.write(encode(event));
    },
    close() {
      clearInterval(heartbeat);
      for (const stream of streams) stream.end();
      streams.clear();
    },
  };
}

function encode({ type, ...data }: LiveEvent): string {
  return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
}
