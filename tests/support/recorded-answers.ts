import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** What a client was answered. */
export interface RecordedAnswer {
  method: string;
  /** Of the request, without its query. */
  path: string;
  status: number;
  /** Its head and its body, as it came over the wire. */
  text: string;
}

export interface RecordedAnswers {
  url: string;
  readonly all: readonly RecordedAnswer[];
  close(): Promise<void>;
}

/**
 * A proxy before a server, which keeps every answer. Signatures stay true: the host that the client has signed is passed on.
 * `target` is asked for each request, since a server that is started again has another address.
 */
export async function recordAnswers(target: () => string): Promise<RecordedAnswers> {
  const all: RecordedAnswer[] = [];
  const server = createServer((incoming, outgoing) => {
    const { method = '', url = '/', rawHeaders } = incoming;
    const { hostname, port } = new URL(target());
    const onward = request({ hostname, port, method, path: url, headers: rawHeaders, agent: false });
    // The client that waits is told by its own connection.
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => onward.destroy());
    onward.on('response', async (answer) => {
      const status = answer.statusCode ?? 0;
      const body = await buffer(answer).catch(() => undefined);
      if (!body) return outgoing.destroy();
      const text = `${answer.rawHeaders.join('\n')}\n\n${body.toString('latin1')}`;
      all.push({ method, path: url.split('?')[0] ?? '', status, text });
      outgoing.writeHead(status, answer.rawHeaders).end(body);
      return outgoing;
    });
    incoming.on('error', () => onward.destroy()).pipe(onward);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    all,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
