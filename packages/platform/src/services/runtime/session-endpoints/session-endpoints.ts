import type { IncomingMessage } from 'node:http';
import { errors } from '@agentplatform/contract';
import type { Entered, EntryRequest } from '../../../kernel/http/index.ts';
import type { Lease, SessionAddress, Sessions } from '../../../kernel/sessions/index.ts';
import type { InvocationTarget, RuntimeCatalogue } from '../catalogue.ts';
import { findTarget, runtimeIdOf } from '../invocation-target.ts';
import { requireToken } from '../require-token.ts';
import { endpointArn } from '../runtime.ts';
import type { RuntimeSocketsDeps } from '../websocket/runtime-sockets.ts';
import { type EndpointRequest, readEndpointRequest } from './endpoint-address.ts';

export interface SessionEndpointsDeps {
  sessions: Sessions;
  catalogue: RuntimeCatalogue;
  verifyToken: RuntimeSocketsDeps['verifyToken'];
}

/** The vendor's name of the right. */
export const PROXY_OPERATION = 'InvokeAgentRuntimeProxy';

/** A session that may be reached at that port, and what its server is asked. */
export interface Reached extends EndpointRequest {
  lease: Lease;
}

/** What it takes to reach the servers inside a live session by its own address, in whatever protocol (developer guide: session endpoints). */
export class SessionEndpoints {
  readonly #deps: SessionEndpointsDeps;

  constructor(deps: SessionEndpointsDeps) {
    this.#deps = deps;
  }

  /** Reads a request for a session, whose bearer token is `token` where it has one. Throws ResourceNotFoundException. */
  read(
    req: Pick<IncomingMessage, 'url' | 'headers'>,
    headersToVerify: string[],
    token: string | undefined,
  ): EntryRequest & { reach(entered: Entered): Promise<Reached> } {
    const request = readEndpointRequest(req.url ?? '');
    const { sandboxId, qualifier } = request;
    let address: Promise<SessionAddress> | undefined;
    const find = (): Promise<SessionAddress> => {
      address ??= this.#find(sandboxId);
      return address;
    };
    const target = async (): Promise<InvocationTarget> =>
      findTarget((await find()).resourceArn, qualifier, this.#deps.catalogue);
    return {
      operation: PROXY_OPERATION,
      headersToVerify,
      resources: async () => {
        const { resourceArn } = await find();
        return [resourceArn, endpointArn(resourceArn, qualifier)];
      },
      bearer: token === undefined ? undefined : async () => this.#deps.verifyToken(await target(), token, req.headers),
      reach: async (entered) => {
        requireToken(entered, await target());
        return { ...request, lease: await this.#lease(request, await find()) };
      },
    };
  }

  /** A request never starts a session: its address is that of one life. */
  async #find(sandboxId: string): Promise<SessionAddress> {
    const address = await this.#deps.sessions.inSandbox(sandboxId);
    if (address?.kind !== 'runtime') throw gone();
    return address;
  }

  async #lease({ sandboxId, port }: EndpointRequest, address: SessionAddress): Promise<Lease> {
    const { sessions } = this.#deps;
    const session = await sessions.find(address);
    // The id may have begun another life meanwhile.
    if (session?.row.sandboxId !== sandboxId) throw gone();
    if (!session.openPorts.some(({ from, to }) => from <= port && port <= to))
      throw errors.accessDenied(`Port ${port} is not among the allowedPorts of ${runtimeIdOf(address.resourceArn)}.`);
    const lease = sessions.tryAcquire(address);
    if (!lease) throw gone();
    return lease;
  }
}

function gone(): Error {
  return errors.resourceNotFound('No session lives at this address.', {
    remedy: 'Invoke the agent runtime. The answer has the new address of its session.',
  });
}
