import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IamPrincipal } from '../auth/index.ts';
import type { Clock } from '../clock.ts';
import { number, object, type Shape, storedText, text, wire } from '../stored-shape.ts';

/** What one server vouches for to another: that this very request came to it, and from whom. */
export interface PeerClaims {
  /** The server that it is meant for. */
  to: string;
  method: string;
  url: string;
  /** Who signed the request; absent when it carries a bearer token, which the other server checks itself. */
  principal?: IamPrincipal;
  /** Where it came from; absent for what no client asked for. */
  sourceIp?: string;
  /** Milliseconds since the epoch. */
  expires: number;
}

export interface PeerTokensDeps {
  /** This server. */
  serverId: string;
  /** The key that the servers of one database share. */
  key: Uint8Array;
  clock: Clock;
}

const CLAIMS: Shape<PeerClaims> = object(
  { to: text, method: text, url: text, expires: number },
  { principal: wire<IamPrincipal>(), sourceIp: text },
);

/** The header that a forwarded request carries. */
export const PEER_HEADER = 'x-agentplatform-peer';
/** As far apart as the clocks of two servers may be. */
const LIFE_MS = 5 * 60_000;

/** Makes and checks the tokens by which servers of one database forward requests to each other. */
export class PeerTokens {
  readonly #deps: PeerTokensDeps;

  constructor(deps: PeerTokensDeps) {
    this.#deps = deps;
  }

  sign(claims: Omit<PeerClaims, 'expires'>): string {
    const text = JSON.stringify({ ...claims, expires: this.#deps.clock.now() + LIFE_MS });
    const body = Buffer.from(text).toString('base64url');
    return `${body}.${mac(this.#deps.key, body).toString('base64url')}`;
  }

  /** The claims of a token for this request at this server; undefined for anything else. */
  verify(token: string, request: { method: string; url: string }): PeerClaims | undefined {
    const [body = '', signature = '', ...rest] = token.split('.');
    if (rest.length > 0) return undefined;
    const expected = mac(this.#deps.key, body);
    const given = Buffer.from(signature, 'base64url');
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
    // Written by a server of this platform, as its signature shows.
    const claims = storedText(CLAIMS, Buffer.from(body, 'base64url').toString());
    const fits =
      claims.to === this.#deps.serverId &&
      claims.method === request.method &&
      claims.url === request.url &&
      claims.expires > this.#deps.clock.now();
    return fits ? claims : undefined;
  }
}

function mac(key: Uint8Array, text: string): Buffer {
  return createHmac('sha256', key).update(`agentplatform-peer\n${text}`).digest();
}
