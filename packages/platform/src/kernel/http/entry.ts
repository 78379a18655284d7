import type { IncomingMessage } from 'node:http';
import type { ServiceError } from '@agentplatform/contract';
import type { OAuthPrincipal, Principal } from '../auth/principal.ts';
import type { AuthenticatedBody, Authenticator } from '../auth/sigv4.ts';
import type { Clock } from '../clock.ts';
import { PEER_HEADER, type PeerForwarder } from '../peers/index.ts';
import { type AuditRecord, auditRecord } from './audit-record.ts';
import type { PipelineDeps } from './pipeline.ts';
import type { RequestRates } from './request-rates.ts';

export interface EntryDeps {
  authenticator: Authenticator;
  authorize: PipelineDeps['authorize'];
  rates: Pick<RequestRates, 'take' | 'refused'>;
  audit(record: AuditRecord): void;
  /** Knows what another server has handed on; absent where there is no other. */
  forward?: Pick<PeerForwarder, 'sent'> | undefined;
  clock: Clock;
}

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
  /** Who bears the token that stands in place of a signature; absent without one. Rejects with 401 or 403. */
  bearer?: ((resources: Resources, signal: AbortSignal) => Promise<OAuthPrincipal>) | undefined;
}

/** Who has come in, and what he was allowed. */
export interface Entered {
  principal: Principal;
  resources: Resources;
  /** Lower-case names of the headers that a presigned URL covers; absent for a signature in the header, to which its caller may add. */
  signedHeaders: ReadonlySet<string> | undefined;
}

/** One request on its way in. */
export interface Entering {
  readonly req: IncomingMessage;
  readonly requestId: string;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
  principal: Principal | undefined;
  resource: string | undefined;
  /** Another server handed it on, as its token shows. */
  readonly forwarded: boolean;
}

/** Takes a body for what its signature says it is. Rejects with the wire's error. */
export type Prove = (body: AuthenticatedBody) => Promise<void>;

/** The stages that everything passes which is no operation of the contract: authenticate → count → authorize, and at its end the audit trail. */
export class Entry {
  readonly #deps: EntryDeps;

  constructor(deps: EntryDeps) {
    this.#deps = deps;
  }

  begin(req: IncomingMessage, requestId: string, signal: AbortSignal): Entering {
    // A client that sends the header itself gains nothing: it is no token of a server.
    const forwarded = req.headers[PEER_HEADER] !== undefined && (this.#deps.forward?.sent(req) ?? false);
    return { req, requestId, signal, forwarded, principal: undefined, resource: undefined };
  }

  /** Lets the sender in, or rejects with the wire's error. `prove` holds the body to its signature: before all else where that alone says who sent it. */
  enter(entering: Entering, request: EntryRequest, prove: Prove): Promise<Entered> {
    return request.bearer
      ? this.#knowBearer(entering, request, request.bearer, prove)
      : this.#knowSigner(entering, request, prove);
  }

  /** Whether the caller may do `action` on `resource`, too. Throws AccessDeniedException. */
  authorize({ req }: Entering, principal: Principal, action: string, resource: string): void {
    this.#deps.authorize({ principal, action, resource, conditions: {}, sourceIp: req.socket.remoteAddress });
  }

  /** Keeps what became of it; of what was handed on the server does that it came to. */
  record(entering: Entering, operation: string, status: number, failure: ServiceError | undefined): void {
    const { req, requestId, principal, resource, forwarded } = entering;
    if (forwarded) return;
    const { audit, rates, clock } = this.#deps;
    audit(
      auditRecord({
        at: clock.now(),
        requestId,
        operation,
        principal,
        resource,
        status,
        errorCode: failure?.code,
        sourceIp: req.socket.remoteAddress,
        userAgent: req.headers['user-agent'],
      }),
    );
    if (failure && !principal && failure.status < 500) rates.refused(req);
  }

  async #knowSigner(entering: Entering, request: EntryRequest, prove: Prove): Promise<Entered> {
    const { req } = entering;
    const { principal, body, signedHeaders } = await this.#deps.authenticator.authenticate({
      method: req.method ?? '',
      rawUrl: req.url ?? '/',
      rawHeaders: request.headersToVerify,
      service: 'bedrock-agentcore',
    });
    if (body.kind === 'undeclared') await prove(body);
    this.#know(entering, principal);
    const resources = await request.resources(principal.accountId);
    this.#authorizeAll(entering, principal, request, resources);
    if (body.kind !== 'undeclared') await prove(body);
    // The vendor's clients give signed headers out, to which their caller adds; whoever is given a presigned URL adds none.
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
    this.#know(entering, principal);
    this.#authorizeAll(entering, principal, request, resources);
    await prove({ kind: 'unsigned' });
    return { principal, resources, signedHeaders: undefined };
  }

  /** From here on the request is his, and counts; one that was handed on was counted where it came to. */
  #know(entering: Entering, principal: Principal): void {
    entering.principal = principal;
    if (!entering.forwarded) this.#deps.rates.take(principal, entering.req.socket.remoteAddress);
  }

  #authorizeAll(entering: Entering, principal: Principal, { operation }: EntryRequest, resources: Resources): void {
    [entering.resource] = resources;
    for (const resource of resources) this.authorize(entering, principal, `bedrock-agentcore:${operation}`, resource);
  }
}
