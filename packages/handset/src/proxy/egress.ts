import { lookup } from 'node:dns/promises';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { connect, isIP, type LookupFunction } from 'node:net';
import type { Duplex } from 'node:stream';
import { listen } from '../server/listen.ts';
import { type AccessPolicy, isInternalName } from './access-policy.ts';
import { isPublicAddress } from './public-address.ts';

/** The addresses of a name. */
export type Resolve = (name: string) => Promise<readonly string[]>;

/** The only way out of the live pages: an HTTP proxy on this machine that Chromium is told to use for everything. */
export interface Egress {
  readonly url: string;
  close(): Promise<void>;
}

export interface EgressOptions {
  readonly allows: AccessPolicy;
  /** Told about every address that was refused. */
  readonly onRefused: (url: string) => void;
  readonly resolve?: Resolve | undefined;
}

const MAX_CONNECTIONS = 256;
const RESOLVE_MS = 5_000;
const SILENCE_MS = 60_000;
/** A socket of a page may be quiet for as long as a visit. */
const TUNNEL_SILENCE_MS = 600_000;
/** Headers that are between two neighbours only (RFC 9110, 7.6.1). */
const HOP_BY_HOP = /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i;

/**
 * Start it. A name is resolved here, once for each connection, and the connection goes to the address that was looked at:
 * a name that points into the machine or its network, now or after a change of heart, leads nowhere, unless config.xml
 * names that address, too.
 */
export async function startEgress({ allows, onRefused, resolve = systemResolve }: EgressOptions): Promise<Egress> {
  const wayTo = async (hostname: string, port: string): Promise<LookupFunction | undefined> => {
    const named = (host: string): boolean =>
      ['http', 'https'].some((scheme) => allows(`${scheme}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`));
    const host = hostname.replace(/^\[|\]$/g, '');
    const found = named(host) ? (isIP(host) ? [host] : await bounded(resolve(host))) : [];
    // The policy lets a numeric or local name pass only where config.xml spells it out.
    const open = found.filter((address) => isInternalName(host) || isPublicAddress(address) || named(address));
    if (open.length > 0) return pinned(open);
    onRefused(`${hostname}:${port}`);
    return undefined;
  };

  const tunnel = async (target: string, client: Duplex, head: Buffer): Promise<void> => {
    const { hostname, port } = new URL(`http://${target}`);
    const way = await wayTo(hostname, port || '80');
    if (!way || client.destroyed) return void client.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    const far = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 80), lookup: way });
    join(client, far);
    far.on('error', () => client.destroy());
    far.setTimeout(TUNNEL_SILENCE_MS, () => far.destroy());
    far.once('connect', () => {
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      far.write(head);
      far.pipe(client).pipe(far);
    });
  };

  const forward = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { protocol, hostname, port, pathname, search } = new URL(incoming.url ?? '');
    const way = protocol === 'http:' ? await wayTo(hostname, port || '80') : undefined;
    // No answer at all: a page must not take a refusal for an answer of the other side.
    if (!way) return void response.destroy();
    const outgoing = request({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port || 80),
      lookup: way,
      agent: false,
      timeout: SILENCE_MS,
      method: incoming.method,
      path: pathname + search,
      headers: endToEnd(incoming),
    });
    outgoing.on('timeout', () => outgoing.destroy());
    outgoing.on('error', () => response.destroy());
    response.on('close', () => outgoing.destroy());
    outgoing.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, endToEnd(answer));
      answer.pipe(response);
    });
    incoming.pipe(outgoing);
  };

  const server = createServer((incoming, response) => {
    forward(incoming, response).catch(() => response.destroy());
  });
  // A connection that could not be taken; `listen` tells of others.
  server.on('error', () => undefined);
  server.maxConnections = MAX_CONNECTIONS;
  const tunnels = new Set<Duplex>();
  server.on('connect', ({ url = '' }, client, head) => {
    tunnels.add(client);
    client.on('close', () => tunnels.delete(client)).on('error', () => client.destroy());
    tunnel(url, client, head).catch(() => client.destroy());
  });
  const { port } = await listen(server, '127.0.0.1', 0);
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
        for (const client of tunnels) client.destroy();
      }),
  };
}

async function systemResolve(name: string): Promise<string[]> {
  const found = await lookup(name, { all: true, order: 'ipv4first' });
  return found.map(({ address }) => address);
}

async function bounded(addresses: Promise<readonly string[]>): Promise<readonly string[]> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<readonly string[]>((give) => {
    timer = setTimeout(() => give([]), RESOLVE_MS);
  });
  // A name that nobody knows has no addresses.
  const found = await Promise.race([addresses.catch(() => []), late]);
  clearTimeout(timer);
  return found;
}

/** A look-up that knows its answer. */
function pinned(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, { all: wantsAll }, give) => {
    if (wantsAll) give(null, all);
    else give(null, all[0]?.address ?? '', all[0]?.family);
  };
}

function endToEnd({ headers }: IncomingMessage): IncomingMessage['headers'] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.test(name)));
}

/** When one end goes, so does the other. */
function join(one: Duplex, other: Duplex): void {
  for (const [near, far] of [
    [one, other],
    [other, one],
  ] as const)
    near.on('close', () => far.destroy());
}
