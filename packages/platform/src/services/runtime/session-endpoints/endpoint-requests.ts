import type { IncomingMessage } from 'node:http';
import { errors } from '@agentplatform/contract';
import {
  type Passing,
  type PassRequest,
  type PassService,
  requestUpstream,
  type UpstreamResponse,
} from '../../../kernel/http/index.ts';
import { explain, goneMeanwhile, heldUntilRead, type InvokeDeps } from '../invoke.ts';
import { SESSION_ENDPOINTS, withoutSignature } from './endpoint-address.ts';
import { EndpointConnections } from './endpoint-connections.ts';
import { answeredHeaders, isPresigned, sentHeaders } from './endpoint-headers.ts';
import { PROXY_OPERATION, type Reached, type SessionEndpoints } from './session-endpoints.ts';

export interface EndpointRequestsDeps extends Pick<InvokeDeps, 'after' | 'limits'> {
  endpoints: SessionEndpoints;
}

/** HTTP to the servers inside sessions: any method, path and body, both ways as they come. */
export class EndpointRequests implements PassService {
  readonly operation = PROXY_OPERATION;
  readonly urls = [`${SESSION_ENDPOINTS}/*`];
  readonly #deps: EndpointRequestsDeps;
  readonly #connections = new EndpointConnections();

  constructor(deps: EndpointRequestsDeps) {
    this.#deps = deps;
  }

  read(req: IncomingMessage): PassRequest {
    const { authorization = '' } = req.headers;
    const token = /^bearer /i.test(authorization) ? authorization.slice(7).trim() : undefined;
    const request = this.#deps.endpoints.read(req, req.rawHeaders, token);
    return { ...request, pass: async (passing) => this.#pass(await request.reach(passing), passing) };
  }

  async #pass(reached: Reached, passing: Passing): Promise<UpstreamResponse> {
    const { lease } = reached;
    try {
      const answer = await this.#send(reached, passing);
      heldUntilRead(answer.body, lease, this.#deps);
      return { ...answer, headers: answeredHeaders(answer, passing.req) };
    } catch (error) {
      lease.release();
      throw refusedAt(reached.port, error) ?? (await explain(error, lease, passing.signal));
    }
  }

  #send({ lease, port, target }: Reached, { req, body, onGone, span }: Passing): Promise<UpstreamResponse> {
    span.handTo(lease.session);
    return requestUpstream(
      this.#connections.to(lease, port),
      {
        method: req.method ?? 'GET',
        path: isPresigned(req) ? withoutSignature(target) : target,
        headers: sentHeaders(req, { sessionId: lease.session.row.sessionId, port, trace: span.context }),
        body: body ?? null,
        headersTimeout: this.#deps.limits.timeoutMs,
      },
      onGone,
      () => goneMeanwhile(lease, port),
    );
  }
}

function refusedAt(port: number, error: unknown): Error | undefined {
  if (!(error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED')) return undefined;
  return errors.runtimeClient(`Nothing listens on port ${port} of the session.`, {
    remedy: 'Start the server there, on 0.0.0.0.',
    cause: error,
  });
}
