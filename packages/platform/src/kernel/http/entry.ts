import type { IncomingMessage } from 'node:http';
import { errors } from '@agentplatform/contract';
import type { AuthenticatedBody, Principal } from '../auth/index.ts';
import type { Exchange, Stages } from './stages.ts';

/** ARNs that a request is about, the first before all. */
export type Resources = readonly [string, ...string[]];

/** What is asked for beside the operations of the contract, as far as it can be read before anybody has said who sent it. */
export interface EntryRequest {
  /** The operation that its caller must be allowed, as policies name it. */
  operation: string;
  /** The headers to verify a signature with, names and values in turn. */
  headersToVerify: string[];
  /** What it is about: each must be allowed by itself, and the first goes into the audit trail. Without an account: for the bearer of a token. */
  resources(accountId?: string): Resources | Promise<Resources>;
  /** Which service its signature is for; `bedrock-agentcore` when absent. */
  service?: string;
  /**
   * Who bears the token that stands in place of a signature, or comes without either where the resource is open; absent for a signature. Rejects
   * with 401 or 403.
   */
  bearer?: ((resources: Resources, signal: AbortSignal) => Promise<Principal>) | undefined;
}

/** Who has come in, and what he was allowed. */
export interface Entered {
  principal: Principal;
  resources: Resources;
  /** Lower-case names of the headers that a presigned URL covers; absent for a signature in the header, to which its caller may add. */
  signedHeaders: ReadonlySet<string> | undefined;
}

/** One request on its way in. */
export interface Entering extends Exchange {
  readonly req: IncomingMessage;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

/** Takes a body for what its signature says it is. Rejects with the wire's error. */
export type Prove = (body: AuthenticatedBody) => Promise<void>;

/** The first stages of what has a signer or the bearer of a token, and resources that can be read off it: authenticate → count → authorize. */
export class Entry {
  readonly #stages: Stages;

  constructor(stages: Stages) {
    this.#stages = stages;
  }

  begin(operation: string, req: IncomingMessage, requestId: string, signal: AbortSignal): Entering {
    const forwarded = this.#stages.forwarded(req);
    const span = this.#stages.span(operation, req);
    return { req, requestId, span, signal, forwarded, principal: undefined, resource: undefined };
  }

  /** Lets the sender in, or rejects with the wire's error. `prove` holds the body to its signature: before all else where that alone says who sent it. */
  async enter(entering: Entering, request: EntryRequest, prove: Prove): Promise<Entered> {
    refuseOtherHost(entering.req);
    return request.bearer
      ? this.#knowBearer(entering, request, request.bearer, prove)
      : this.#knowSigner(entering, request, prove);
  }

  async #knowSigner(entering: Entering, request: EntryRequest, prove: Prove): Promise<Entered> {
    const { req } = entering;
    const { principal, body, signedHeaders } = await this.#stages.authenticate(
      { method: req.method, url: req.url, rawHeaders: request.headersToVerify },
      request.service ?? 'bedrock-agentcore',
    );
    if (body.kind === 'undeclared') await prove(body);
    this.#stages.know(entering, principal);
    const resources = await request.resources(principal.accountId);
    this.#authorizeAll(entering, principal, request, resources);
    if (body.kind !== 'undeclared') await prove(body);
    // The vendor's clients give signed headers out, to which their caller adds; the holder of a presigned URL adds none.
    const presigned = req.headers.authorization === undefined;
    return { principal, resources, signedHeaders: presigned ? signedHeaders : undefined };
  }

  async #knowBearer(
    entering: Entering,
    request: EntryRequest,
    bearer: NonNullable<EntryRequest['bearer']>,
    prove: Prove,
  ): Promise<Entered> {
    const resources = await request.resources();
    const principal = await bearer(resources, entering.signal);
    this.#stages.know(entering, principal);
    this.#authorizeAll(entering, principal, request, resources);
    await prove({ kind: 'unsigned' });
    return { principal, resources, signedHeaders: undefined };
  }

  #authorizeAll(entering: Entering, principal: Principal, { operation }: EntryRequest, resources: Resources): void {
    [entering.resource] = resources;
    for (const resource of resources)
      this.#stages.authorize(entering, principal, { action: `bedrock-agentcore:${operation}`, resource });
  }
}

/**
 * Throws ValidationException for a request whose Host headers differ (RFC 9112, 3.2): what stands before the platform may have gone by
 * another than the platform. One host said twice is let in: the vendor's Python client sends its signed one beside that of its WebSocket library.
 */
function refuseOtherHost({ rawHeaders }: IncomingMessage): void {
  const hosts = rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === 'host');
  if (hosts.some((host) => host !== hosts[0]))
    throw errors.validation('The request has several Host headers that differ.');
}
