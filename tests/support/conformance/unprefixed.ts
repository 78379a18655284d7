import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A front of a gateway by which its one target is reached without its prefix. */
export interface Unprefixed {
  url: string;
  close(): Promise<void>;
}

/** How a gateway names tools and prompts: with the target before them. */
const SEPARATOR = '___';

/**
 * Names in requests get the prefix and names in lists lose it; all else goes through as it is, `Host` and `Origin` too. A gateway has no targets
 * without a prefix, and the conformance suite knows its tools by fixed names.
 */
export async function startUnprefixed(gatewayUrl: URL, target: string): Promise<Unprefixed> {
  const prefix = `${target}${SEPARATOR}`;
  const server = createServer((req, res) => {
    void pass(req, res, gatewayUrl, prefix).catch(() => res.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${gatewayUrl.pathname}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function pass(req: IncomingMessage, res: ServerResponse, to: URL, prefix: string): Promise<void> {
  const parts: Buffer[] = [];
  for await (const part of req) parts.push(part);
  const body = withPrefix(Buffer.concat(parts).toString(), prefix);
  const headers: Record<string, string | string[] | undefined> = { ...req.headers, 'content-length': undefined };
  // Where the caller says how he reaches the front, that is how he reaches the gateway.
  const here = req.headers.host?.endsWith(`:${req.socket.localPort}`);
  if (here) headers.host = to.host;
  if (here && req.headers.origin !== undefined) headers.origin = to.origin;
  const name = req.headers['mcp-name'];
  const { method } = parsed(body);
  if (typeof name === 'string' && !name.includes('://') && (method === 'tools/call' || method === 'prompts/get'))
    headers['mcp-name'] = name.trim() === '' ? name : `${prefix}${name.trim()}`;
  for (const [one, value] of Object.entries(headers)) if (value === undefined) delete headers[one];
  const upstream = request(to, {
    method: req.method,
    headers: { ...headers, ...(body !== '' && { 'content-length': String(Buffer.byteLength(body)) }) },
  });
  res.once('close', () => upstream.destroy());
  upstream.once('error', () => res.destroy());
  upstream.end(body);
  const [answer] = (await once(upstream, 'response')) as [IncomingMessage];
  const { 'content-length': _, ...answered } = answer.headers;
  res.writeHead(answer.statusCode ?? 502, answered);
  res.flushHeaders();
  answer.setEncoding('utf8');
  // A name is written in one part: servers write each message at once.
  for await (const part of answer) res.write(String(part).replaceAll(`"name":"${prefix}`, '"name":"'));
  res.end();
}

function parsed(body: string): { method?: unknown; params?: { name?: unknown } } {
  try {
    return JSON.parse(body) ?? {};
  } catch {
    return {};
  }
}

function withPrefix(body: string, prefix: string): string {
  const message = parsed(body);
  const { method, params } = message;
  if ((method !== 'tools/call' && method !== 'prompts/get') || typeof params?.name !== 'string') return body;
  return JSON.stringify({ ...message, params: { ...params, name: `${prefix}${params.name}` } });
}
