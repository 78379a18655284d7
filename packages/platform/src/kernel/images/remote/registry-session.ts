import ipaddr from 'ipaddr.js';
import type { Logger } from 'pino';
import { type Clock, sleep } from '../../clock.ts';
import { asOutboundError, type Outbound, type OutboundErrorCode, type OutboundResponse } from '../../outbound/index.ts';
import { ImageError, type RegistryCredentials } from '../images.ts';
import { isObject } from '../manifest.ts';
import { type Challenge, parseChallenges } from './registry-challenge.ts';

export interface RegistryDeps {
  outbound: Pick<Outbound, 'fetch' | 'resolve'>;
  clock: Clock;
  log: Logger;
}

export interface RegistryRequest {
  accept: string;
  /** Bytes of body at most. */
  maxBytes: number;
  /** Milliseconds for the whole answer. */
  timeoutMs: number;
  signal: AbortSignal;
}

const ATTEMPTS = 4;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;
const TOKEN_BYTES = 1024 * 1024;
const SHORT_TIMEOUT_MS = 30_000;
/** Trying again changes nothing about these. */
const FINAL: ReadonlySet<OutboundErrorCode> = new Set([
  'BAD_URL',
  'SCHEME_REFUSED',
  'USERINFO_REFUSED',
  'PORT_REFUSED',
  'ADDRESS_REFUSED',
  'TOO_MANY_REDIRECTS',
  'REDIRECT_REFUSED',
  'TOO_LARGE',
  'BAD_ENCODING',
]);

/**
 * Requests to one repository of one registry: chooses http or https, answers the authentication challenge (Basic, or
 * Bearer with a token from the registry's token service) and tries again what may pass. Plain http is spoken only to
 * names whose every address is loopback or private, and those only where the operator opened them.
 */
export class RegistrySession {
  readonly #deps: RegistryDeps;
  readonly #host: string;
  readonly #repository: string;
  readonly #credentials: RegistryCredentials | undefined;
  #base: Promise<string> | undefined;
  #authorization: string | undefined;

  constructor(deps: RegistryDeps, target: { registry: string; repository: string; credentials?: RegistryCredentials }) {
    this.#deps = deps;
    this.#host = target.registry === 'docker.io' ? 'registry-1.docker.io' : target.registry;
    this.#repository = target.repository;
    this.#credentials = target.credentials;
  }

  /** GETs `/v2/<repository>/<path>`. Only a 200 comes back; everything else is an `ImageError`. The body must be read or destroyed. */
  async get(path: string, request: RegistryRequest): Promise<OutboundResponse> {
    this.#base ??= this.#findBase(request.signal);
    const url = `${await this.#base}/v2/${this.#repository}/${path}`;
    let answer = await this.#send(url, request);
    if (answer.status === 401) {
      const header = answer.headers['www-authenticate'];
      answer.body.destroy();
      this.#authorization = await this.#authorize(
        parseChallenges(Array.isArray(header) ? header.join(',') : (header ?? '')),
        request.signal,
      );
      answer = await this.#send(url, request);
    }
    if (answer.status === 200) return answer;
    throw await this.#refusal(answer, path);
  }

  async #send(url: string, request: RegistryRequest): Promise<OutboundResponse> {
    const headers: Record<string, string> = { accept: request.accept, 'accept-encoding': 'identity' };
    if (this.#authorization !== undefined) headers.authorization = this.#authorization;
    for (let attempt = 1; ; attempt++) {
      const last = attempt === ATTEMPTS;
      let pause = FIRST_PAUSE_MS * 2 ** (attempt - 1);
      try {
        const { maxBytes, timeoutMs, signal } = request;
        const answer = await this.#deps.outbound.fetch(url, { headers, maxBytes, timeoutMs, signal });
        if (last || !(answer.status === 429 || answer.status >= 500)) return answer;
        answer.body.destroy();
        pause = Math.max(pause, retryAfterMs(answer.headers['retry-after']));
      } catch (error) {
        request.signal.throwIfAborted();
        const known = asOutboundError(error);
        if (last || (known && FINAL.has(known.code))) throw this.#unreachable(error);
        this.#deps.log.debug({ registry: this.#host, attempt, err: error }, 'registry request failed, trying again');
      }
      await sleep(this.#deps.clock, Math.min(pause, LONGEST_PAUSE_MS), request.signal);
    }
  }

  async #findBase(signal: AbortSignal): Promise<string> {
    const https = `https://${this.#host}`;
    if (!(await this.#mayUseHttp())) return https;
    try {
      const answer = await this.#deps.outbound.fetch(`${https}/v2/`, {
        timeoutMs: SHORT_TIMEOUT_MS,
        maxBytes: TOKEN_BYTES,
        signal,
      });
      answer.body.destroy();
      return https;
    } catch (error) {
      signal.throwIfAborted();
      this.#deps.log.debug({ registry: this.#host, err: error }, 'no TLS at this private registry, using http');
      return `http://${this.#host}`;
    }
  }

  async #mayUseHttp(): Promise<boolean> {
    try {
      const name = new URL(`http://${this.#host}`).hostname.replace(/^\[|\]$/g, '');
      const addresses = await this.#deps.outbound.resolve(name);
      return addresses.every(({ address }) => ipaddr.process(address).range() !== 'unicast');
    } catch {
      // The request itself will say what is wrong with the name.
      return false;
    }
  }

  async #authorize(challenges: readonly Challenge[], signal: AbortSignal): Promise<string> {
    const basic =
      this.#credentials &&
      `Basic ${Buffer.from(`${this.#credentials.username}:${this.#credentials.password}`).toString('base64')}`;
    const bearer = challenges.find((c) => c.scheme === 'bearer' && c.parameters.realm);
    if (bearer) return `Bearer ${await this.#token(bearer, basic, signal)}`;
    if (basic !== undefined && this.#authorization !== basic && challenges.some((c) => c.scheme === 'basic'))
      return basic;
    throw this.#unauthorized();
  }

  async #token(challenge: Challenge, basic: string | undefined, signal: AbortSignal): Promise<string> {
    const { realm = '', service, scope } = challenge.parameters;
    if (!URL.canParse(realm))
      throw new ImageError('unreachable', `The registry ${this.#host} names no usable token service.`);
    const url = new URL(realm);
    const base = await this.#base;
    // A password does not go out in the clear because a registry says so.
    if (url.protocol !== 'https:' && !(url.protocol === 'http:' && base?.startsWith('http:'))) {
      throw new ImageError(
        'unauthorized',
        `The registry ${this.#host} wants its token fetched without TLS, which is refused.`,
      );
    }
    if (service !== undefined) url.searchParams.set('service', service);
    url.searchParams.set('scope', scope ?? `repository:${this.#repository}:pull`);
    let answer: OutboundResponse;
    try {
      const headers = basic === undefined ? undefined : { authorization: basic };
      answer = await this.#deps.outbound.fetch(url, {
        headers,
        timeoutMs: SHORT_TIMEOUT_MS,
        maxBytes: TOKEN_BYTES,
        signal,
      });
      if (answer.status === 200) {
        const body = await answer.json();
        const token = isObject(body) ? (body.token ?? body.access_token) : undefined;
        if (typeof token === 'string' && /^[\x21-\x7e]+$/.test(token)) return token;
        throw new ImageError('unreachable', `The token service of ${this.#host} answered without a token.`);
      }
      answer.body.destroy();
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof ImageError ? error : this.#unreachable(error);
    }
    if (answer.status >= 500)
      throw new ImageError('unreachable', `The token service of ${this.#host} answered ${answer.status}; try again.`);
    throw this.#unauthorized();
  }

  async #refusal(answer: OutboundResponse, path: string): Promise<ImageError> {
    answer.body.destroy();
    const name = `${this.#host}/${this.#repository}`;
    if (answer.status === 401 || answer.status === 403) return this.#unauthorized();
    if (answer.status === 404)
      return new ImageError(
        'not-found',
        `${name} has no ${path.replace('/', ' ')}; check the name, the tag and that it was pushed.`,
      );
    return new ImageError(
      'unreachable',
      `The registry ${this.#host} answered ${answer.status} for ${name}; try again later.`,
    );
  }

  #unauthorized(): ImageError {
    const name = `${this.#host}/${this.#repository}`;
    const remedy = this.#credentials
      ? 'the credentials are wrong or may not read it'
      : 'it is private or does not exist; give credentials';
    return new ImageError('unauthorized', `The registry refuses access to ${name}: ${remedy}.`);
  }

  #unreachable(error: unknown): ImageError {
    const known = asOutboundError(error);
    if (known?.code === 'TOO_LARGE')
      return new ImageError('too-large', `The registry ${this.#host} sent more than it may: ${known.message}.`);
    this.#deps.log.warn({ registry: this.#host, err: error }, 'a registry cannot be reached');
    return new ImageError(
      'unreachable',
      `The registry ${this.#host} cannot be reached: ${unreachableBecause(known?.code)}.`,
      { cause: error },
    );
  }
}

/**
 * What a user is told. Whether a name exists, what it resolves to and whether something listens there is not his to know of a
 * private network, and a registry may lead anywhere by redirects: the log alone says more.
 */
function unreachableBecause(code: OutboundErrorCode | undefined): string {
  switch (code) {
    case 'ADDRESS_REFUSED':
    case 'NAME_NOT_RESOLVED':
      return 'its name leads to no address that the platform calls; check the name, or have the operator open a private range with --allow-private-egress';
    case 'OVERLOADED':
      return 'the platform makes too many calls at once; try again';
    default:
      return 'it gave no answer that can be used; check the name and the port, or try again (the log of the platform says more)';
  }
}

function retryAfterMs(header: string | string[] | undefined): number {
  const seconds = Number(typeof header === 'string' ? header : Number.NaN);
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 0;
}
