import type { control } from '@agentplatform/contract';
import type { AuthorizationServer } from 'oauth4webapi';
import type { Clock } from '../../../kernel/clock.ts';
import { Lru } from '../../../kernel/lru.ts';
import { asOutboundError, type Outbound } from '../../../kernel/outbound/index.ts';
import { SingleFlight } from '../../../kernel/single-flight.ts';
import { ProviderError } from './provider-error.ts';

export interface AuthorizationServersDeps {
  /** The guard: such documents name further addresses. */
  outbound: Pick<Outbound, 'fetch'>;
  clock: Pick<Clock, 'now'>;
}

interface Known {
  server: AuthorizationServer;
  readAt: number;
}

const AT_HAND = 500;
/** As the keys of issuers (`oidc-discovery.ts`). */
const MAX_AGE_MS = 600_000;
const MAX_BYTES = 512 * 1024;
const TIMEOUT_MS = 5_000;

/**
 * What authorization servers say of themselves (OpenID Connect Discovery 1.0, RFC 8414), kept for a while; one that is down for a moment is as it
 * was. The issuer is not compared with the document's address, as in `oidc-discovery.ts`: who made the provider chose the document.
 */
export class AuthorizationServers {
  readonly #deps: AuthorizationServersDeps;
  readonly #known = new Lru<string, Known>(AT_HAND);
  readonly #reading = new SingleFlight<AuthorizationServer>();

  constructor(deps: AuthorizationServersDeps) {
    this.#deps = deps;
  }

  /** `ca` (PEM) is believed beside the usual authorities. Rejects with `ProviderError`. */
  async find(discovery: control.Oauth2Discovery, ca: string | undefined): Promise<AuthorizationServer> {
    const { discoveryUrl, authorizationServerMetadata: told } = discovery;
    if (discoveryUrl === undefined) {
      const { issuer = '', authorizationEndpoint, tokenEndpoint } = told ?? {};
      return serverOf({ issuer, authorization_endpoint: authorizationEndpoint, token_endpoint: tokenEndpoint }, issuer);
    }
    const name = ca === undefined ? discoveryUrl : `${discoveryUrl}\n${ca}`;
    const known = this.#known.get(name);
    if (known && this.#deps.clock.now() - known.readAt < MAX_AGE_MS) return known.server;
    const reading = this.#reading.run(name, () => this.#read(discoveryUrl, ca, name));
    return known ? reading.catch(() => known.server) : reading;
  }

  async #read(discoveryUrl: string, ca: string | undefined, name: string): Promise<AuthorizationServer> {
    const server = serverOf(await this.#fetch(discoveryUrl, ca), discoveryUrl);
    this.#known.set(name, { server, readAt: this.#deps.clock.now() });
    return server;
  }

  async #fetch(url: string, ca: string | undefined): Promise<Record<string, unknown>> {
    const wrong = (why: string, kind: ProviderError['kind'], cause?: unknown): ProviderError =>
      new ProviderError(kind, `The discovery document ${url} cannot be used: ${why}.`, { cause });
    try {
      const accept = { accept: 'application/json' };
      const options = { headers: accept, maxBytes: MAX_BYTES, timeoutMs: TIMEOUT_MS, redirects: 3, ca };
      const answer = await this.#deps.outbound.fetch(url, options);
      if (answer.status !== 200) {
        answer.body.on('error', () => {}).destroy();
        throw wrong(`it answers ${answer.status}`, answer.status >= 500 ? 'unreachable' : 'nonsense');
      }
      const body = await answer.json();
      if (typeof body !== 'object' || body === null || Array.isArray(body))
        throw wrong('it is not a JSON object', 'nonsense');
      return { ...body };
    } catch (cause) {
      if (cause instanceof ProviderError) throw cause;
      const known = asOutboundError(cause);
      const passing =
        known === undefined || ['TIMEOUT', 'CONNECTION_FAILED', 'NAME_NOT_RESOLVED', 'OVERLOADED'].includes(known.code);
      throw wrong(known?.message ?? String(cause), passing ? 'unreachable' : 'nonsense', cause);
    }
  }
}

/** An address: it stands in messages, rows and pages. */
const PLAIN = /^[\x21-\x7e]{1,2048}$/;

/** Of the web: a browser is sent there, too. */
function isWeb(address: string): boolean {
  return URL.canParse(address) && /^https?:$/.test(new URL(address).protocol);
}

/** Reads what the platform uses of a server's metadata. Throws `ProviderError` where that is not there. */
function serverOf(metadata: Record<string, unknown>, from: string): AuthorizationServer {
  const address = (name: string): string | undefined => {
    const value = metadata[name];
    return typeof value === 'string' && PLAIN.test(value) && isWeb(value) ? value : undefined;
  };
  const { issuer, authorization_response_iss_parameter_supported: namesItself } = metadata;
  const tokenEndpoint = address('token_endpoint');
  if (typeof issuer !== 'string' || !PLAIN.test(issuer))
    throw new ProviderError('nonsense', `${from} names no issuer.`);
  if (!tokenEndpoint) throw new ProviderError('nonsense', `${from} names no token endpoint.`);
  const authorizationEndpoint = address('authorization_endpoint');
  const revocationEndpoint = address('revocation_endpoint');
  return {
    issuer,
    token_endpoint: tokenEndpoint,
    ...(authorizationEndpoint !== undefined && { authorization_endpoint: authorizationEndpoint }),
    ...(revocationEndpoint !== undefined && { revocation_endpoint: revocationEndpoint }),
    ...(namesItself === true && { authorization_response_iss_parameter_supported: true }),
  };
}
