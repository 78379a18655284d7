import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import type { Server as OldServer } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { createMcpHandler, type Server } from '@modelcontextprotocol/server';

/** A server on the loopback interface, and what came to it. */
export interface Backend {
  /** Of its MCP endpoint. */
  url: string;
  requests: { method: string; url: string; headers: IncomingMessage['headers'] }[];
  close(): Promise<void>;
}

export async function startBackend(listener: RequestListener): Promise<Backend> {
  const requests: Backend['requests'] = [];
  const server = createServer((req, res) => {
    requests.push({ method: req.method ?? '', url: req.url ?? '', headers: req.headers });
    res.on('error', () => undefined);
    listener(req, res);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A server of 2026-07-28, stateless, of the official package; it answers older clients too when it is told so. */
export function startModernBackend(
  make: () => Server,
  legacy: 'stateless' | 'reject' = 'reject',
  more: Record<string, string> = {},
): Promise<Backend> {
  const handler = createMcpHandler(make, { legacy });
  return startBackend((req, res) => {
    for (const [name, value] of Object.entries(more)) res.setHeader(name, value);
    void answer(req, res, (request) => handler.fetch(request));
  });
}

/** A server of 2025-11-25 with sessions, of the official package before. */
export async function startSessionBackend(
  make: () => OldServer,
): Promise<Backend & { sessions: Map<string, StreamableHTTPServerTransport> }> {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const id = req.headers['mcp-session-id'];
    const known = typeof id === 'string' ? sessions.get(id) : undefined;
    if (known) return known.handleRequest(req, res);
    if (id !== undefined) return void res.writeHead(404).end();
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (made) => void sessions.set(made, transport),
      onsessionclosed: (gone) => void sessions.delete(gone),
    });
    // The types of that package allow no undefined members.
    await make().connect(transport as Parameters<OldServer['connect']>[0]);
    return transport.handleRequest(req, res);
  };
  const backend = await startBackend((req, res) => void serve(req, res));
  return { ...backend, sessions };
}

async function answer(
  req: IncomingMessage,
  res: ServerResponse,
  serve: (request: Request) => Promise<Response>,
): Promise<void> {
  const gone = new AbortController();
  res.once('close', () => gone.abort());
  const parts: Buffer[] = [];
  for await (const part of req) parts.push(part);
  const body = Buffer.concat(parts);
  const request = new Request(`http://${req.headers.host}${req.url}`, {
    method: req.method ?? 'GET',
    headers: new Headers(Object.entries(req.headers).map(([name, value]): [string, string] => [name, String(value)])),
    signal: gone.signal,
    ...(body.length > 0 && { body }),
  });
  const { status, headers, body: answered } = await serve(request);
  res.writeHead(status, Object.fromEntries(headers));
  if (!answered) return void res.end();
  Readable.fromWeb(answered as import('node:stream/web').ReadableStream)
    .on('error', () => res.destroy())
    .pipe(res);
}
