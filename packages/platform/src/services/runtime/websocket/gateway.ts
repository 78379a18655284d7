import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { errors } from '@agentplatform/contract';
import type { Logger } from 'pino';
import { type WebSocket, WebSocketServer } from 'ws';
import type { OAuthPrincipal, Principal } from '../../../kernel/auth/principal.ts';
import type { Authenticator } from '../../../kernel/auth/sigv4.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { refuseUpgrade, type UpgradeHandler } from '../../../kernel/http/upgrade.ts';
import { PEER_HEADER, type PeerForwarder } from '../../../kernel/peers/index.ts';
import { HeldElsewhereError } from '../../../kernel/sessions/server-hold.ts';
import type { Lease } from '../../../kernel/sessions/session.ts';
import { agentHeaders } from '../agent-headers.ts';
import type { InvocationTarget, RuntimeCatalogue } from '../catalogue.ts';
import { SESSION_HEADER } from '../container-headers.ts';
import { findTarget, namedArns } from '../invocation-target.ts';
import { acquire, type InvokeDeps } from '../invoke.ts';
import { requireSigned } from '../require-signed.ts';
import { requireUser } from '../require-user.ts';
import { dialAgent, endingOf } from './agent-stream.ts';
import { closeSocket } from './close-socket.ts';
import { acceptUpgrade, readHandshake } from './handshake.ts';
import { keepAlive } from './heartbeat.ts';
import { headersForSignature, readStreamRequest, type StreamRequest } from './request.ts';
import { failedStatus, MAX_FRAME_BYTES } from './shell-frames.ts';
import { Shells } from './shells.ts';
import { SplicedStream } from './spliced-stream.ts';

/** The vendor's names of the two rights. */
const ACTIONS = {
  agent: 'InvokeAgentRuntimeWithWebSocketStream',
  shell: 'InvokeAgentRuntimeCommandShell',
} as const;
const SHELL_HEADER = 'x-amzn-bedrock-agentcore-shell-id';
/** Protocols whose containers have `/ws` beside their invocations (COMPATIBILITY 1). */
const WITH_WEBSOCKET: ReadonlySet<string> = new Set(['HTTP', 'AGUI']);
/** Streams at once; each holds two sockets. */
const MAX_STREAMS = 10_000;

export interface StreamRecord {
  requestId: string;
  operation: (typeof ACTIONS)[StreamRequest['kind']];
  principal: Principal | undefined;
  resource: string | undefined;
  /** 101 when the stream was opened. */
  status: number;
  error: Error | undefined;
  req: IncomingMessage;
}

export interface StreamGatewayDeps
  extends Pick<InvokeDeps, 'sessions' | 'tokens' | 'planFor' | 'newSessionId' | 'limits'> {
  catalogue: RuntimeCatalogue;
  authenticator: Authenticator;
  /** Throws AccessDeniedException unless `principal` may do `action` on `resource`. */
  authorize(request: {
    principal: Principal;
    action: string;
    resource: string;
    conditions: Record<string, string | string[]>;
    sourceIp: string | undefined;
  }): void;
  /** Counts an opening for its caller. Throws ThrottlingException beyond his rate. */
  count(principal: Principal, sourceIp: string | undefined): void;
  verifyToken(target: InvocationTarget, token: string, signal: AbortSignal): Promise<OAuthPrincipal>;
  takeInvocation(endpointArn: string): void;
  /** The wire's error for whatever was thrown, or undefined for a defect of ours. */
  toError(error: unknown): Error | undefined;
  record(stream: StreamRecord): void;
  /** Joins a stream with the server that has its session; absent where there is no other. */
  forward?: Pick<PeerForwarder, 'upgrade'> | undefined;
  newRequestId(): string;
  clock: Clock;
  region: string;
  /** Largest message in bytes, either way, and how often a silent peer is asked whether it is there, in ms. */
  streams: { maxMessageBytes: number; pingIntervalMs: number; handshakeMs: number };
  log: Logger;
}

/** What can be ended, and when it has. */
interface OpenStream {
  close(code: number, reason: string, graceMs: number): void;
  closed: Promise<unknown>;
}

/** A stream that is allowed and whose session lives. */
interface Opened {
  target: InvocationTarget;
  lease: Lease;
  sessionId: string;
  principal: Principal;
}

/** WebSockets of agent runtimes: to the agent's own `/ws`, and interactive shells in its sandbox (spec: Runtime). */
export class StreamGateway {
  readonly #deps: StreamGatewayDeps;
  readonly #shells: Shells;
  readonly #shellServer: WebSocketServer;
  readonly #open = new Set<OpenStream>();
  /** The subprotocol to answer a request with. */
  readonly #protocols = new WeakMap<IncomingMessage, string>();
  #opening = 0;

  constructor(deps: StreamGatewayDeps) {
    this.#deps = deps;
    this.#shells = new Shells(deps.clock);
    this.#shellServer = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: MAX_FRAME_BYTES,
      handleProtocols: (_offered, req) => this.#protocols.get(req) ?? false,
    }).on('error', (error) => deps.log.error({ err: error }, 'the server of shells failed'));
  }

  /** Takes every request to upgrade that the server gets. */
  readonly upgrade: UpgradeHandler = (req, socket, head) => {
    const requestId = this.#deps.newRequestId();
    // A client that resets its connection is no error of the server.
    socket.on('error', () => socket.destroy());
    this.#serve(req, socket, head, requestId).catch((error: unknown) => {
      const known = this.#deps.toError(error);
      const log = this.#deps.log.child({ requestId });
      if (known || socket.destroyed) log.debug({ err: error }, 'a stream was refused');
      else log.error({ err: error }, 'a stream failed for a reason inside the platform');
      refuseUpgrade(socket, known ?? errors.internal('The platform failed.', { cause: error }), requestId);
    });
  };

  /** Ends every stream with 1001, and every shell. */
  async close(): Promise<void> {
    const open = [...this.#open];
    for (const stream of open) stream.close(1001, 'the server is stopping', 1000);
    await Promise.all(open.map(({ closed }) => closed));
    await this.#shells.close();
  }

  async #serve(req: IncomingMessage, socket: Duplex, head: Buffer, requestId: string): Promise<void> {
    const path = req.url?.split('?')[0];
    const request = readStreamRequest(req);
    if (!request) throw errors.unknownOperation(`There is no WebSocket at ${path}.`);
    const key = readHandshake(req);
    if (this.#open.size + this.#opening >= MAX_STREAMS)
      throw errors.throttling('The server has as many streams as it can hold.', { retryAfterSeconds: 5 });
    const record: StreamRecord = {
      requestId,
      operation: ACTIONS[request.kind],
      principal: undefined,
      resource: undefined,
      status: 101,
      error: undefined,
      req,
    };
    this.#opening += 1;
    const gone = new AbortController();
    const onGone = (): void => gone.abort(new Error('the client closed the connection'));
    socket.once('close', onGone);
    try {
      const opened = await this.#admit(req, request, record, gone.signal).catch((error: unknown) => {
        if (!(error instanceof HeldElsewhereError)) throw error;
        return this.#forward(error, req, socket, head, record);
      });
      if (!opened) return;
      try {
        await (request.kind === 'agent'
          ? this.#openAgent(req, { socket, head, key }, request, opened, requestId, gone.signal)
          : this.#openShell(req, socket, head, request, opened));
      } catch (error) {
        opened.lease.release();
        throw error;
      }
    } catch (error) {
      record.error = this.#deps.toError(error) ?? errors.internal('The platform failed.', { cause: error });
      throw error;
    } finally {
      socket.off('close', onGone);
      this.#opening -= 1;
      this.#deps.record(record);
    }
  }

  async #forward(
    held: HeldElsewhereError,
    req: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    { principal }: StreamRecord,
  ): Promise<undefined> {
    const { forward } = this.#deps;
    if (!forward || !principal || req.headers[PEER_HEADER] !== undefined) throw held;
    await forward.upgrade({ req, held, principal }, socket, head);
  }

  /** Who asks, may they, and which session: rejects with the wire's error. */
  async #admit(
    req: IncomingMessage,
    request: StreamRequest,
    record: StreamRecord,
    signal: AbortSignal,
  ): Promise<Opened> {
    const deps = this.#deps;
    const named = { ...request, agentRuntimeArn: request.runtime };
    const action = `bedrock-agentcore:${ACTIONS[request.kind]}`;
    let principal: Principal;
    let target: InvocationTarget;
    if (request.bearer === undefined) {
      const signed = await deps.authenticator.authenticate({
        method: req.method ?? '',
        rawUrl: req.url ?? '/',
        rawHeaders: headersForSignature(req),
        service: 'bedrock-agentcore',
      });
      // Such a signature proves nothing before the body was read, and here nobody reads one.
      if (signed.body.kind === 'undeclared') throw errors.validation('A request to open a WebSocket has no body.');
      principal = signed.principal;
      record.principal = principal;
      deps.count(principal, req.socket.remoteAddress);
      const arns = namedArns(named, { region: deps.region, accountId: principal.accountId });
      const [arn] = arns;
      record.resource = arn;
      this.#authorize(req, principal, action, arns);
      target = await findTarget(arn, request.qualifier, deps.catalogue);
      if (target.version.definition.authorizerConfiguration?.customJWTAuthorizer)
        throw errors.accessDenied(
          'Authorization method mismatch: this agent runtime takes OAuth bearer tokens, the request was signed.',
          { remedy: 'Send a token of the configured OpenID provider.' },
        );
      // The vendor's clients give signed headers out, to which their caller adds; whoever is given a presigned URL adds none.
      if (req.headers.authorization === undefined)
        requireSigned({ headers: req.headers, signedHeaders: signed.signedHeaders }, target.headerAllowlist);
    } else {
      const arns = namedArns(named, { region: deps.region });
      const [arn] = arns;
      target = await findTarget(arn, request.qualifier, deps.catalogue);
      principal = await deps.verifyToken(target, request.bearer, signal);
      record.principal = principal;
      record.resource = arn;
      deps.count(principal, req.socket.remoteAddress);
      this.#authorize(req, principal, action, arns);
    }
    const require = async (action: string, arn: string): Promise<void> =>
      this.#authorize(req, principal, action, [arn]);
    await requireUser({ headers: req.headers, principal, require }, target);
    if (request.kind === 'agent' && !WITH_WEBSOCKET.has(target.version.protocol))
      throw errors.validation(
        `${target.runtime.id} speaks ${target.version.protocol}; only HTTP and AGUI agents have a WebSocket.`,
      );
    deps.takeInvocation(target.endpoint.arn);
    const sessionId = request.sessionId ?? deps.newSessionId();
    const key = { accountId: target.runtime.accountId, resourceArn: target.runtime.arn, sessionId };
    const lease = deps.sessions.tryAcquire(key) ?? (await acquire(key, target, { signal }, deps));
    return { target, lease, sessionId, principal };
  }

  #authorize(req: IncomingMessage, principal: Principal, action: string, resources: readonly string[]): void {
    const sourceIp = req.socket.remoteAddress;
    for (const resource of resources) this.#deps.authorize({ principal, action, resource, conditions: {}, sourceIp });
  }

  async #openAgent(
    req: IncomingMessage,
    { socket, head, key }: { socket: Duplex; head: Buffer; key: string },
    request: StreamRequest,
    { target, lease, sessionId, principal }: Opened,
    requestId: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { tokens, streams, clock, limits } = this.#deps;
    const headers: IncomingMessage['headers'] = { ...request.queryHeaders, ...req.headers };
    if (request.bearer !== undefined) headers.authorization = `Bearer ${request.bearer}`;
    const agent = await dialAgent(lease, lease.session.row.port, {
      headers: agentHeaders(target, { headers, principal }, { tokens, sessionId, requestId }),
      protocols: request.protocols,
      handshakeMs: streams.handshakeMs,
      signal,
    });
    const protocol = agent.protocol ?? request.answeredProtocol;
    const lines = [`${SESSION_HEADER}: ${sessionId}`];
    if (protocol !== undefined) lines.push(`Sec-WebSocket-Protocol: ${protocol}`);
    if (!acceptUpgrade(socket, key, lines)) {
      agent.socket.destroy();
      return lease.release();
    }
    const stream = new SplicedStream({
      client: { socket, head },
      agent,
      ...streams,
      clock,
      explain: async () => (await endingOf(lease)) ?? 'the agent broke the connection',
    });
    this.#open.add(stream);
    const stop = clock.after(limits.streamTimeoutMs, () => stream.close(1001, 'the stream has reached its time limit'));
    void stream.closed.then(() => {
      stop();
      this.#open.delete(stream);
      lease.release();
    });
  }

  async #openShell(
    req: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    request: StreamRequest,
    { lease, sessionId }: Opened,
  ): Promise<void> {
    const { streams, clock, newRequestId, log } = this.#deps;
    const shellId = request.shellId ?? newRequestId();
    const client = this.#acceptShell(req, socket, head, request.answeredProtocol, [
      `${SESSION_HEADER}: ${sessionId}`,
      `${SHELL_HEADER}: ${shellId}`,
    ]);
    if (!client) return lease.release();
    client.on('error', () => undefined);
    const stop = keepAlive(client, streams.pingIntervalMs, clock);
    client.once('close', () => {
      stop();
      lease.release();
    });
    client.pause();
    try {
      const opened = await this.#shells.open(lease, shellId);
      if (!opened) {
        client.send(failedStatus('This session has as many shells as it may have.'));
        return closeSocket(client, 1013, 'too many shells');
      }
      const { shell, reconnected } = opened;
      client.once('close', () => this.#shells.leave(shell, client));
      shell.attach(client, reconnected);
      if (client.readyState === client.CLOSED) this.#shells.leave(shell, client);
      void lease.sandbox.exited.then(() => closeSocket(client, 1001, 'the session has ended'));
    } catch (error) {
      log.warn({ err: error, sandboxId: lease.sandbox.id }, 'a shell could not be started in its sandbox');
      client.send(failedStatus(error instanceof Error ? error.message : String(error)));
      closeSocket(client, 1011, 'the shell could not be started');
    } finally {
      client.resume();
    }
  }

  /** Answers 101, with that subprotocol and those header lines; undefined when it is no proper handshake or the client is gone. */
  #acceptShell(
    req: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    protocol: string | undefined,
    lines: string[],
  ): WebSocket | undefined {
    let client: WebSocket | undefined;
    if (protocol) this.#protocols.set(req, protocol);
    const answer = (headers: string[]): void => {
      headers.push(...lines);
    };
    const server = this.#shellServer;
    server.once('headers', answer);
    try {
      server.handleUpgrade(req, socket, head, (opened) => {
        client = opened;
      });
    } finally {
      server.off('headers', answer);
    }
    if (client) {
      const opened = client;
      const closed = new Promise((resolve) => opened.once('close', resolve));
      const stream = { closed, close: (...how: [number, string, number]) => closeSocket(opened, ...how) };
      this.#open.add(stream);
      void closed.then(() => this.#open.delete(stream));
    }
    return client;
  }
}
