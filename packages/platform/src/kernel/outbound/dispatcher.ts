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
}

/**
 * An undici dispatcher that connects only to allowed addresses. The name is resolved inside the connect itself, so the
 * address that was judged is the address of the socket; a kept-alive socket stays with it.
 */
export function createGuardedDispatcher(options: DispatcherOptions): Dispatcher {
  const connect = buildConnector({
    timeout: options.connectTimeoutMs,
    allowH2: false,
    lookup: toLookup(options.resolve),
    autoSelectFamily: true,
    ...(options.ca === undefined ? {} : { ca: [...getCACertificates('default'), options.ca] }),
  });
  const agent = new Agent({
    connections: options.connectionsPerOrigin,
    maxOrigins: 1024,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: 4_000,
    connect(target, callback) {
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
    },
  });
  // Literal addresses are judged here: Node does not call `lookup` for them.
  return agent.compose((dispatch) => (request, handler) => {
    checkTarget(new URL(String(request.origin)), options);
    return dispatch(request, handler);
  });
}
