import type { IncomingMessage } from 'node:http';
import type { SocketOpening, SocketRequest, SocketService } from '../../../kernel/http/index.ts';
import { dialAgent } from '../websocket/agent-stream.ts';
import { readCredentials } from '../websocket/credentials.ts';
import { type SpliceDeps, spliceAgent } from '../websocket/splice-agent.ts';
import { isForSession, withoutSignature } from './endpoint-address.ts';
import { isPresigned, sentHeaders } from './endpoint-headers.ts';
import type { Reached, SessionEndpoints } from './session-endpoints.ts';

export interface EndpointSocketsDeps extends SpliceDeps {
  endpoints: SessionEndpoints;
}

/** Of the handshake, which is made anew on the other side. */
const OF_HANDSHAKE = /^sec-websocket-/;

/** WebSockets of the servers inside sessions. */
export class EndpointSockets implements SocketService {
  readonly #deps: EndpointSocketsDeps;

  constructor(deps: EndpointSocketsDeps) {
    this.#deps = deps;
  }

  read(req: IncomingMessage): SocketRequest | undefined {
    if (!isForSession(req.url ?? '')) return undefined;
    const { bearer, protocols, answeredProtocol } = readCredentials(req);
    const request = this.#deps.endpoints.read(req, req.rawHeaders, bearer);
    return {
      ...request,
      open: async (opening) => {
        const reached = await request.reach(opening);
        await this.#open(opening, reached, protocols, answeredProtocol).catch((error: unknown) => {
          reached.lease.release();
          throw error;
        });
      },
    };
  }

  async #open(
    opening: SocketOpening,
    { lease, port, target }: Reached,
    protocols: string[],
    answeredProtocol: string | undefined,
  ): Promise<void> {
    const { req, signal, span } = opening;
    span.handTo(lease.session);
    const agent = await dialAgent(lease, port, {
      path: isPresigned(req) ? withoutSignature(target) : target,
      headers: sentHeaders(req, { sessionId: lease.session.row.sessionId, port, trace: span.context }, OF_HANDSHAKE),
      protocols,
      handshakeMs: this.#deps.streams.handshakeMs,
      signal,
    });
    spliceAgent(opening, agent, lease, { lines: [], protocol: agent.protocol ?? answeredProtocol }, this.#deps);
  }
}
