import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { errors, requestIdHeader, type WireResponse } from '@agentplatform/contract';
import { Agent } from 'undici';
import type { Principal } from '../auth/index.ts';
import { HOP_BY_HOP } from '../hop-by-hop.ts';
import { type OnGone, requestUpstream, type UpstreamResponse } from '../http/index.ts';
import type { HeldElsewhereError } from '../sessions/index.ts';
import { isTraceHeader, type TraceContext, traceHeaders } from '../telemetry/index.ts';
import { PEER_HEADER, type PeerClaims, type PeerTokens } from './peer-token.ts';

/** A request whose session another server has, as far as it was read. */
export interface Forwarded {
  req: Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders'>;
  held: HeldElsewhereError;
  principal: Principal;
  /** Where it came from; undefined for what no client asked for. */
  sourceIp: string | undefined;
  /** What it is a part of here; absent where nothing is traced, and the caller's own headers go on. */
  trace?: TraceContext | undefined;
}

const CONNECT_MS = 3_000;
/** Of a request that another server gets, these are its own. */
const NOT_KEPT = new Set([...HOP_BY_HOP, 'content-length', PEER_HEADER, requestIdHeader]);
const OF_UPGRADE = new Set(['connection', 'upgrade']);

/** What is open to one life of another server. */
interface Peer {
  serverId: string;
  epoch: number;
  agent: Agent;
  tunnels: Set<Duplex>;
}

/** Hands requests on to the server that has the session, and its answers back. */
export class PeerForwarder {
  readonly #tokens: PeerTokens;
  readonly #peers = new Set<Peer>();

  constructor(tokens: PeerTokens) {
    this.#tokens = tokens;
  }

  /**
   * Sends the request with `body`, of `length` bytes where the client has told it, and gives the answer, its body streaming. An agent may take as long as it likes; what ends
   * the wait is that the caller goes, or that the server is given up. Rejects with 503 when it is, or cannot be reached.
   */
  async request(
    forwarded: Forwarded,
    body: Uint8Array | AsyncIterable<Uint8Array> | undefined,
    length: number | undefined,
    onGone: OnGone,
  ): Promise<WireResponse> {
    const answer = await this.#ask(forwarded, body, length, onGone);
    const answered: Record<string, string> = {};
    for (const [name, value] of Object.entries(answer.headers))
      if (value !== undefined && !NOT_KEPT.has(name)) answered[name] = String(value);
    return { status: answer.status, headers: answered, body: answer.body };
  }

  /** Sends it on as it came and gives the answer as it comes. Rejects as above. */
  async relay(
    forwarded: Forwarded,
    body: Uint8Array | AsyncIterable<Uint8Array> | undefined,
    length: number | undefined,
    onGone: OnGone,
  ): Promise<UpstreamResponse> {
    const answer = await this.#ask(forwarded, body, length, onGone);
    const headers = Object.entries(answer.headers).filter(
      ([name]) => !HOP_BY_HOP.has(name) && name !== requestIdHeader,
    );
    return { ...answer, headers: Object.fromEntries(headers) };
  }

  async #ask(
    forwarded: Forwarded,
    body: Uint8Array | AsyncIterable<Uint8Array> | undefined,
    length: number | undefined,
    onGone: OnGone,
  ): Promise<UpstreamResponse> {
    const { req, held } = forwarded;
    const declared = length === undefined ? [] : ['content-length', String(length)];
    const { method = 'GET', url = '/' } = req;
    const request = {
      origin: `http://${addressOf(held)}`,
      path: url,
      method,
      headers: [...kept(forwarded), ...declared, PEER_HEADER, this.#token(forwarded)],
      // Undici's types know no AsyncIterable here, its code does.
      body: body instanceof Uint8Array || body === undefined ? (body ?? null) : (body as unknown as Duplex),
    };
    const { agent } = this.#peer(held);
    return requestUpstream(agent, request, onGone).catch((error: unknown) => {
      throw unreachable(held, error);
    });
  }

  /** Joins the connection of a request to upgrade with the other server. Rejects with 503 when it cannot be reached; the connection is untouched then. */
  async upgrade(forwarded: Forwarded, socket: Duplex, head: Buffer): Promise<void> {
    const { req, held } = forwarded;
    const lines = [`${req.method} ${req.url} HTTP/1.1`];
    const headers = kept(forwarded, OF_UPGRADE);
    headers.push(PEER_HEADER, this.#token(forwarded));
    for (let i = 0; i + 1 < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`);
    const upstream = await dial(held);
    // Its client may have left meanwhile, which it says only once.
    if (socket.destroyed) return void upstream.destroy();
    upstream.write(`${lines.join('\r\n')}\r\n\r\n`);
    if (head.length > 0) upstream.write(head);
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      one.once('error', () => other.destroy());
      one.once('close', () => other.destroy());
    }
    const { tunnels } = this.#peer(held);
    tunnels.add(upstream);
    upstream.once('close', () => tunnels.delete(upstream));
    socket.pipe(upstream);
    upstream.pipe(socket);
  }

  /** What another server says of a request that it handed on; undefined for any other. */
  sent({ headers, method = 'GET', url = '/' }: IncomingMessage): PeerClaims | undefined {
    const token = headers[PEER_HEADER];
    return typeof token === 'string' ? this.#tokens.verify(token, { method, url }) : undefined;
  }

  /**
   * Breaks off all that this server waits for from the lives of another up to that epoch, which are over: their sandboxes have ended, or
   * will. A later life may have been asked already.
   */
  abandon(serverId: string, epoch: number): void {
    for (const peer of this.#peers) {
      if (peer.serverId !== serverId || peer.epoch > epoch) continue;
      this.#peers.delete(peer);
      void end(peer);
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#peers].map(end));
  }

  #peer({ holder: { serverId, epoch } }: HeldElsewhereError): Peer {
    for (const peer of this.#peers) if (peer.serverId === serverId && peer.epoch === epoch) return peer;
    const agent = new Agent({ connect: { timeout: CONNECT_MS }, headersTimeout: 0, bodyTimeout: 0 });
    const peer = { serverId, epoch, agent, tunnels: new Set<Duplex>() };
    this.#peers.add(peer);
    return peer;
  }

  #token({ req, held, principal, sourceIp }: Forwarded): string {
    return this.#tokens.sign({
      to: held.holder.serverId,
      method: req.method ?? 'GET',
      url: req.url ?? '/',
      ...(principal.kind === 'iam' ? { principal } : {}),
      ...(sourceIp !== undefined && { sourceIp }),
    });
  }
}

async function end({ agent, tunnels }: Peer): Promise<void> {
  for (const tunnel of tunnels) tunnel.destroy();
  await agent.destroy();
}

function kept({ req, trace }: Forwarded, also?: ReadonlySet<string>): string[] {
  const headers = trace ? traceHeaders(trace) : [];
  for (let i = 0; i + 1 < req.rawHeaders.length; i += 2) {
    const [name = '', value = ''] = req.rawHeaders.slice(i, i + 2);
    const lower = name.toLowerCase();
    if (trace && isTraceHeader(lower)) continue;
    if (!NOT_KEPT.has(lower) || also?.has(lower)) headers.push(name, value);
  }
  return headers;
}

async function dial(held: HeldElsewhereError): Promise<Socket> {
  const { hostname, port } = new URL(`http://${addressOf(held)}`);
  const socket = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) });
  socket.setNoDelay(true);
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(CONNECT_MS) });
    return socket;
  } catch (error) {
    socket.destroy();
    throw unreachable(held, error);
  }
}

function addressOf(held: HeldElsewhereError): string {
  if (held.holder.address === undefined) throw unreachable(held, undefined);
  return held.holder.address;
}

function unreachable(held: HeldElsewhereError, cause: unknown): Error {
  return errors.unavailable(`The server that has this session, ${held.holder.serverId}, does not answer.`, {
    remedy:
      'Repeat the request: the session is taken up by that server’s next start, or ended when its lease has passed.',
    retryAfterSeconds: 5,
    cause,
  });
}
