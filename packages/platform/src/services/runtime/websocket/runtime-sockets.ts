import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { errors } from '@agentplatform/contract';
import type { Logger } from 'pino';
import { type WebSocket, WebSocketServer } from 'ws';
import type { OAuthPrincipal, Principal } from '../../../kernel/auth/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import {
  closeSocket,
  keepAlive,
  type Resources,
  type SocketOpening,
  type SocketRequest,
  type SocketService,
} from '../../../kernel/http/index.ts';
import type { Lease } from '../../../kernel/sessions/index.ts';
import { agentHeaders } from '../agent-headers.ts';
import { agentSpan, endWith, held } from '../agent-span.ts';
import type { InvocationTarget, RuntimeCatalogue } from '../catalogue.ts';
import { SESSION_HEADER } from '../container-headers.ts';
import { findTarget, namedArns } from '../invocation-target.ts';
import { acquire, type InvokeDeps } from '../invoke.ts';
import { requireSigned } from '../require-signed.ts';
import { requireUser } from '../require-user.ts';
import { dialAgent } from './agent-stream.ts';
import { headersForSignature, readStreamRequest, type StreamRequest } from './request.ts';
import { failedStatus, MAX_FRAME_BYTES } from './shell-frames.ts';
import { Shells } from './shells.ts';
import { spliceAgent } from './splice-agent.ts';

/** The vendor's names of the two rights. */
const ACTIONS = {
  agent: 'InvokeAgentRuntimeWithWebSocketStream',
  shell: 'InvokeAgentRuntimeCommandShell',
} as const;
const SHELL_HEADER = 'x-amzn-bedrock-agentcore-shell-id';
/** Protocols whose containers have `/ws` beside their invocations (COMPATIBILITY 1). */
const WITH_WEBSOCKET: ReadonlySet<string> = new Set(['HTTP', 'AGUI']);

export interface RuntimeSocketsDeps
  extends Pick<InvokeDeps, 'sessions' | 'tokens' | 'planFor' | 'newSessionId' | 'limits'> {
  catalogue: RuntimeCatalogue;
  verifyToken(target: InvocationTarget, token: string, headers: IncomingHttpHeaders): Promise<OAuthPrincipal>;
  takeInvocation(endpointArn: string): void;
  newRequestId(): string;
  clock: Clock;
  region: string;
  /** Largest message in bytes, either way, and how often a silent peer is asked whether it is there, in ms. */
  streams: { maxMessageBytes: number; pingIntervalMs: number; handshakeMs: number };
  log: Logger;
}

/** A stream that is allowed and whose session lives. */
interface Admitted {
  target: InvocationTarget;
  lease: Lease;
  sessionId: string;
  principal: Principal;
}

/** WebSockets of agent runtimes: to the agent's own `/ws`, and interactive shells in its sandbox (spec: Runtime). */
export class RuntimeSockets implements SocketService {
  readonly #deps: RuntimeSocketsDeps;
  readonly #shells: Shells;
  readonly #shellServer: WebSocketServer;
  /** The subprotocol to answer a request with. */
  readonly #protocols = new WeakMap<IncomingMessage, string>();

  constructor(deps: RuntimeSocketsDeps) {
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

  read(req: IncomingMessage): SocketRequest | undefined {
    const request = readStreamRequest(req);
    if (!request) return undefined;
    const { region } = this.#deps;
    const { bearer } = request;
    const named = { ...request, agentRuntimeArn: request.runtime };
    // Judged by the token's check and opened: one and the same, whatever is deployed between the two.
    let target: Promise<InvocationTarget> | undefined;
    const find = ([arn]: Resources): Promise<InvocationTarget> => {
      target ??= Promise.resolve(findTarget(arn, request.qualifier, this.#deps.catalogue));
      return target;
    };
    return {
      operation: ACTIONS[request.kind],
      headersToVerify: headersForSignature(req),
      resources: (accountId) => namedArns(named, accountId === undefined ? { region } : { region, accountId }),
      bearer:
        bearer === undefined
          ? undefined
          : async (resources) => this.#deps.verifyToken(await find(resources), bearer, req.headers),
      open: async (opening) => this.#open(opening, request, await find(opening.resources)),
    };
  }

  /** Ends every shell; called once their WebSockets are closed. */
  close(): Promise<void> {
    return this.#shells.close();
  }

  async #open(opening: SocketOpening, request: StreamRequest, target: InvocationTarget): Promise<void> {
    const admitted = await this.#admit(opening, request, target);
    try {
      await (request.kind === 'agent'
        ? this.#openAgent(opening, request, admitted)
        : this.#openShell(opening, request, admitted));
    } catch (error) {
      admitted.lease.release();
      throw error;
    }
  }

  /** What only this service can judge of a caller who is allowed, and which session: rejects with the wire's error. */
  async #admit(opening: SocketOpening, request: StreamRequest, target: InvocationTarget): Promise<Admitted> {
    const deps = this.#deps;
    const { req, principal, signedHeaders, signal, span, require } = opening;
    if (request.bearer === undefined && target.version.definition.authorizerConfiguration?.customJWTAuthorizer)
      throw errors.accessDenied(
        'Authorization method mismatch: this agent runtime accepts OAuth bearer tokens, but the request was signed.',
        { remedy: 'Send a token of the configured OpenID provider.' },
      );
    requireSigned({ headers: req.headers, signedHeaders }, target.headerAllowlist);
    await requireUser({ headers: req.headers, principal, require }, target);
    if (request.kind === 'agent' && !WITH_WEBSOCKET.has(target.version.protocol))
      throw errors.validation(
        `${target.runtime.id} speaks ${target.version.protocol}; only HTTP and AGUI agents have a WebSocket.`,
      );
    deps.takeInvocation(target.endpoint.arn);
    const sessionId = request.sessionId ?? deps.newSessionId();
    const key = { accountId: target.runtime.accountId, resourceArn: target.runtime.arn, sessionId };
    const lease = deps.sessions.tryAcquire(key) ?? (await acquire(key, target, { signal, span }, deps));
    return { target, lease, sessionId, principal };
  }

  async #openAgent(
    opening: SocketOpening,
    request: StreamRequest,
    { target, lease, sessionId, principal }: Admitted,
  ): Promise<void> {
    const { tokens, streams } = this.#deps;
    const { req, requestId, signal, span } = opening;
    const asked = agentSpan(span, 'invoke_agent', target, lease);
    const headers: IncomingMessage['headers'] = { ...request.queryHeaders, ...req.headers };
    if (request.bearer !== undefined) headers.authorization = `Bearer ${request.bearer}`;
    const agent = await dialAgent(lease, lease.session.row.port, {
      path: '/ws',
      headers: agentHeaders(target, { headers, principal }, { tokens, sessionId, requestId, trace: asked.context }),
      protocols: request.protocols,
      handshakeMs: streams.handshakeMs,
      signal,
    }).catch((error: unknown) => {
      endWith(asked, error);
      throw error;
    });
    const lines = [`${SESSION_HEADER}: ${sessionId}`];
    spliceAgent(
      opening,
      agent,
      held(lease, asked),
      { lines, protocol: agent.protocol ?? request.answeredProtocol },
      this.#deps,
    );
  }

  async #openShell(opening: SocketOpening, request: StreamRequest, { lease, sessionId }: Admitted): Promise<void> {
    const { streams, clock, newRequestId, log } = this.#deps;
    opening.span.handTo(lease.session);
    const shellId = request.shellId ?? newRequestId();
    const client = this.#acceptShell(opening, request.answeredProtocol, [
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
    { req, socket, head, opened }: SocketOpening,
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
      server.handleUpgrade(req, socket, head, (accepted) => {
        client = accepted;
      });
    } finally {
      server.off('headers', answer);
    }
    if (client) {
      const accepted = client;
      const closed = new Promise((resolve) => accepted.once('close', resolve));
      opened({ closed, close: (...how) => closeSocket(accepted, ...how) });
    }
    return client;
  }
}
