import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { errors, type ServiceError } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Principal } from '../../auth/principal.ts';
import type { PeerForwarder } from '../../peers/index.ts';
import { HeldElsewhereError } from '../../sessions/server-hold.ts';
import { toServiceError } from '../service-errors.ts';
import { type Exchange, Stages, type StagesDeps } from '../stages.ts';
import { refuseUpgrade, type UpgradeHandler } from '../upgrade.ts';
import { readHandshake } from './handshake.ts';
import type { OpenSocket, Resources, SocketOpening, SocketRequest, SocketService } from './socket-service.ts';

export interface SocketPipelineDeps extends StagesDeps {
  services: readonly SocketService[];
  /** Joins a stream with the server that has its session; absent where there is no other. */
  forward?: Pick<PeerForwarder, 'upgrade' | 'sent'> | undefined;
  newRequestId(): string;
  log: Logger;
}

/** WebSockets at once; each holds two connections. */
const MAX_OPEN = 10_000;

const SWITCHING = 101;

/** What is known of a caller who may go on. */
type Known = Pick<SocketOpening, 'principal' | 'resources' | 'signedHeaders'>;

/** What the client brings along, its connection and what it has sent on it. */
interface Upgrade extends Exchange {
  readonly socket: Duplex;
  readonly head: Buffer;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

/**
 * The path of every request to open a WebSocket, top to bottom in `#open`, with the stages that an operation has (`Pipeline`): request id → route →
 * authenticate → count → authorize → open, or hand on to the server that has the session → audit.
 */
export class SocketPipeline {
  readonly #deps: SocketPipelineDeps;
  readonly #stages: Stages;
  readonly #open = new Set<OpenSocket>();
  #opening = 0;

  constructor(deps: SocketPipelineDeps) {
    this.#deps = deps;
    this.#stages = new Stages(deps);
  }

  /** Takes every request to upgrade that the server gets. */
  readonly upgrade: UpgradeHandler = (req, socket, head) => {
    const requestId = this.#deps.newRequestId();
    // A client that resets its connection is no error of the server.
    socket.on('error', () => socket.destroy());
    this.#serve(req, socket, head, requestId).catch((error: unknown) => {
      const known = toServiceError(error);
      const log = this.#deps.log.child({ requestId });
      if (known || socket.destroyed) log.debug({ err: error }, 'a stream was refused');
      else log.error({ err: error }, 'a stream failed for a reason inside the platform');
      refuseUpgrade(socket, known ?? internal(error), requestId);
    });
  };

  /** Ends every WebSocket with 1001. */
  async close(): Promise<void> {
    const open = [...this.#open];
    for (const stream of open) stream.close(1001, 'the server is stopping', 1000);
    await Promise.all(open.map(({ closed }) => closed));
  }

  async #serve(req: IncomingMessage, socket: Duplex, head: Buffer, requestId: string): Promise<void> {
    const request = this.#route(req);
    const key = readHandshake(req);
    if (this.#open.size + this.#opening >= MAX_OPEN)
      throw errors.throttling('The server has as many streams as it can hold.', { retryAfterSeconds: 5 });
    const gone = new AbortController();
    const onGone = (): void => gone.abort(new Error('the client closed the connection'));
    const upgrade: Upgrade = {
      ...{ req, socket, head, requestId, signal: gone.signal },
      principal: undefined,
      resource: undefined,
      forwarded: this.#stages.isForwarded(req),
    };
    let failure: ServiceError | undefined;
    this.#opening += 1;
    socket.once('close', onGone);
    try {
      await this.#answer(upgrade, request, key);
    } catch (error) {
      failure = toServiceError(error) ?? internal(error);
      throw error;
    } finally {
      socket.off('close', onGone);
      this.#opening -= 1;
      this.#stages.record(upgrade, request.operation, failure?.status ?? SWITCHING, failure);
    }
  }

  #route(req: IncomingMessage): SocketRequest {
    for (const service of this.#deps.services) {
      const request = service.read(req);
      if (request) return request;
    }
    throw errors.unknownOperation(`There is no WebSocket at ${req.url?.split('?')[0]}.`);
  }

  async #answer(upgrade: Upgrade, request: SocketRequest, key: string): Promise<void> {
    const { req, socket, head, requestId, signal } = upgrade;
    const { principal, signedHeaders, resources } = await (request.bearer
      ? this.#knowBearer(upgrade, request, request.bearer)
      : this.#knowSigner(upgrade, request));
    const require = async (action: string, resource: string): Promise<void> =>
      this.#stages.authorize(upgrade, principal, { action, resource });
    const opening: SocketOpening = {
      ...{ req, socket, head, key, requestId, principal, resources, signedHeaders, signal, require },
      opened: (stream) => this.#keep(stream),
    };
    try {
      await request.open(opening);
    } catch (error) {
      if (!(error instanceof HeldElsewhereError)) throw error;
      const { forward } = this.#deps;
      if (!forward || upgrade.forwarded) throw error;
      await forward.upgrade({ req, held: error, principal }, socket, head);
    }
  }

  async #knowSigner(upgrade: Upgrade, request: SocketRequest): Promise<Known> {
    const { req } = upgrade;
    const { method, url } = req;
    const { principal, body, signedHeaders } = await this.#stages.authenticate(
      { method, url, rawHeaders: request.headersToVerify },
      'bedrock-agentcore',
    );
    // Such a signature proves nothing before the body was read, and here nobody reads one.
    if (body.kind === 'undeclared') throw errors.validation('A request to open a WebSocket has no body.');
    this.#stages.know(upgrade, principal);
    const resources = request.resources(principal.accountId);
    this.#authorizeAll(upgrade, principal, request, resources);
    // The vendor's clients give signed headers out, to which their caller adds; whoever is given a presigned URL adds none.
    const presigned = req.headers.authorization === undefined;
    return { principal, resources, signedHeaders: presigned ? signedHeaders : undefined };
  }

  async #knowBearer(
    upgrade: Upgrade,
    request: SocketRequest,
    bearer: NonNullable<SocketRequest['bearer']>,
  ): Promise<Known> {
    const resources = request.resources();
    const principal = await bearer(resources, upgrade.signal);
    this.#stages.know(upgrade, principal);
    this.#authorizeAll(upgrade, principal, request, resources);
    return { principal, resources, signedHeaders: undefined };
  }

  #authorizeAll(upgrade: Upgrade, principal: Principal, { operation }: SocketRequest, resources: Resources): void {
    [upgrade.resource] = resources;
    for (const resource of resources)
      this.#stages.authorize(upgrade, principal, { action: `bedrock-agentcore:${operation}`, resource });
  }

  #keep(stream: OpenSocket): void {
    this.#open.add(stream);
    void stream.closed.then(() => this.#open.delete(stream));
  }
}

function internal(cause: unknown): ServiceError {
  return errors.internal('The platform failed.', { cause });
}
