import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Device } from '../preview/devices.ts';
import { browserScript } from '../server/browser-script.ts';
import type { Exchange } from './exchange.ts';

/** The stream of interactions to the preview pages that are open. */
export interface PreviewFeed {
  connect(request: IncomingMessage, response: ServerResponse): void;
  send(exchange: Exchange): void;
  /** Tell the pages that the application was built anew. */
  rebuilt(): void;
  close(): void;
}

const MAX_STREAMS = 16;

export function createPreviewFeed(): PreviewFeed {
  const streams = new Set<ServerResponse>();
  return {
    connect(request, response) {
      if (streams.size >= MAX_STREAMS) {
        response.writeHead(503, { 'content-type': 'text/plain; charset=utf-8' });
        response.end('Too many previews are open; close one.\n');
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
      response.write(': connected\n\n');
      streams.add(response);
      request.on('close', () => streams.delete(response));
    },
    send(exchange) {
      // The page sees local answers as they happen; here they come late, with the next round trip.
      if (exchange.kind === 'local') return;
      for (const stream of streams) stream.write(`data: ${JSON.stringify(exchange)}\n\n`);
    },
    rebuilt() {
      for (const stream of streams) stream.write('event: rebuilt\ndata:\n\n');
    },
    close() {
      for (const stream of streams) stream.end();
      streams.clear();
    },
  };
}

/** Answer with the page that shows a phone beside what each interaction cost. */
export function previewPage(response: ServerResponse, { width, height }: Device): void {
  const html = browserScript('browser/proxy-preview.html')
    .replace('--width: 240px', `--width: ${width}px`)
    .replace('--height: 400px', `--height: ${height}px`);
  response.writeHead(200, {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'content-security-policy': POLICY,
  });
  response.end(html);
}

const POLICY =
  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; frame-src 'self'; frame-ancestors 'none'";
