import { getCACertificates } from 'node:tls';
import { Agent, buildConnector, type Dispatcher } from 'undici';
import type { AddressPolicy } from './address-policy.ts';
import { OutboundError } from './errors.ts';
import { type Resolve, toLookup } from './resolver.ts';
import { checkTarget } from './target.ts';

export interface DispatcherOptions {
  addresses: AddressPolicy;
  resolve: Resolve;
  ports?: readonly number[];
  connectTimeoutMs: number;
  /** Most connections to one origin. */
  connectionsPerOrigin: number;
  /** PEM of authorities that certificates may be of, beside those that Node believes anyway. */
  ca?: string | undefined;
  /** Origins that one agent gets to know; their connections are kept for a while, for calls that follow each other. */
  origins: number;
}

export interface GuardedDispatcher {
  dispatcher: Dispatcher;
  /** Ends all its connections. */
  destroy(): Promise<void>;
}

/**
 * An undici dispatcher that connects only to allowed addresses. The name is resolved inside the connect itself, so the
 * address that was judged is the address of the socket; a kept-alive socket stays with it.
 *
 * An agent of undici remembers an origin whose last call was given up, for ever. One that knows many is replaced, and ends once
 * what is under way by it has ended: whoever names thousands of silent servers neither fills the memory nor shuts the way out.
 */
export function createGuardedDispatcher(options: DispatcherOptions): GuardedDispatcher {
  const connect = guardedConnect(options);
  const makeAgent = (): Agent =>
    new Agent({
      connections: options.connectionsPerOrigin,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: 4_000,
      connect,
    });
  let agent = makeAgent();
  let known = new Set<string>();
  const ending = new Set<Agent>();
  const agentOf = (origin: string): Agent => {
    if (known.size >= options.origins && !known.has(origin)) {
      const old = agent;
      ending.add(old);
      old.close(() => ending.delete(old));
      agent = makeAgent();
      known = new Set();
    }
    known.add(origin);
    return agent;
  };
  return {
    // Literal addresses are judged here: Node does not call `lookup` for them.
    dispatcher: agent.compose(() => (request, handler) => {
      const { origin } = checkTarget(new URL(String(request.origin)), options);
      return agentOf(origin).dispatch(request, handler);
    }),
    async destroy() {
      await Promise.all([agent, ...ending].map((one) => one.destroy(null)));
    },
  };
}

function guardedConnect(options: DispatcherOptions): buildConnector.connector {
  const connect = buildConnector({
    timeout: options.connectTimeoutMs,
    allowH2: false,
    lookup: toLookup(options.resolve),
    autoSelectFamily: true,
    ...(options.ca === undefined ? {} : { ca: [...getCACertificates('default'), options.ca] }),
  });
  return (target, callback) =>
    connect(target, (error, socket) => {
      if (error) return callback(error, null);
      // Belt and braces: what is really at the other end.
      const remote = socket.remoteAddress;
      if (remote === undefined || options.addresses.refusal(remote) !== undefined) {
        socket.destroy();
        return callback(new OutboundError('ADDRESS_REFUSED', `connected to ${remote}, which is closed`), null);
      }
      callback(null, socket);
    });
}
