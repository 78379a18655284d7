import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { errors, type ServiceError } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { PeerForwarder } from '../../peers/index.ts';
import { HeldElsewhereError } from '../../sessions/index.ts';
import { type Entering, Entry, type Prove } from '../entry.ts';
import { toServiceError } from '../service-errors.ts';
import { Stages, type StagesDeps } from '../stages.ts';
import { refuseUpgrade, type UpgradeHandler } from '../upgrade.ts';
import { readHandshake } from './handshake.ts';
import type { OpenSocket, SocketOpening, SocketRequest, SocketService } from './socket-service.ts';

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

/** What the client brings along, its connection and what it has sent on it. */
interface Upgrade {
  entering: Entering;
  socket: Duplex;
  head: Buffer;
}

/** Such a signature proves nothing before the body was read, and here nobody reads one. */
const withoutBody: Prove = async ({ kind }) => {
  if (kind === 'undeclared') throw errors.validation('A request to open a WebSocket has no body.');
};

/**
 * The path of every request to open a WebSocket, top to bottom in `#serve`: request id → route → enter (`Entry`) → open, or hand on to the
 * server that has the session → audit.
 */
export class SocketPipeline {
  readonly #deps: SocketPipelineDeps;
  readonly #stages: Stages;
  readonly #entry: Entry;
  readonly #open = new Set<OpenSocket>();
  #opening = 0;

  constructor(deps: SocketPipelineDeps) {
    this.#deps = deps;
    this.#stages = new Stages(deps);
    this.#entry = new Entry(this.#stages);
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
    const entering = this.#entry.begin(request.operation, req, requestId, gone.signal);
    let open: OpenSocket | undefined;
    let failure: ServiceError | undefined;
    this.#opening += 1;
    socket.once('close', onGone);
    try {
      open = await this.#stages.during(entering, () => this.#answer({ socket, head, entering }, request, key));
    } catch (error) {
      failure = toServiceError(error) ?? internal(error);
      throw error;
    } finally {
      socket.off('close', onGone);
      this.#opening -= 1;
      const status = failure?.status ?? SWITCHING;
      this.#stages.record(entering, request.operation, status, failure);
      if (!open) this.#stages.finish(entering, status, failure?.code);
      else void open.closed.then(() => this.#stages.finish(entering, status, undefined));
    }
  }

  #route(req: IncomingMessage): SocketRequest {
    for (const service of this.#deps.services) {
      const request = service.read(req);
      if (request) return request;
    }
    throw errors.unknownOperation(`There is no WebSocket at ${req.url?.split('?')[0]}.`);
  }

  /** What it has opened; undefined when another server has it, or the client is gone. */
  async #answer(
    { entering, socket, head }: Upgrade,
    request: SocketRequest,
    key: string,
  ): Promise<OpenSocket | undefined> {
    const { req, requestId, signal, forwarded, span } = entering;
    const entered = await this.#entry.enter(entering, request, withoutBody);
    const { principal } = entered;
    const require = async (action: string, resource: string): Promise<void> =>
      this.#stages.authorize(entering, principal, { action, resource });
    let open: OpenSocket | undefined;
    const opening: SocketOpening = {
      ...{ ...entered, req, socket, head, key, requestId, signal, span, require },
      opened: (stream) => {
        open = stream;
        this.#keep(stream);
      },
    };
    try {
      await request.open(opening);
      return open;
    } catch (error) {
      if (!(error instanceof HeldElsewhereError)) throw error;
      const { forward } = this.#deps;
      if (!forward || forwarded) throw error;
      await forward.upgrade(
        { req, held: error, principal, sourceIp: req.socket.remoteAddress, trace: span.context },
        socket,
        head,
      );
      return undefined;
    }
  }

  #keep(stream: OpenSocket): void {
    this.#open.add(stream);
    void stream.closed.then(() => this.#open.delete(stream));
  }
}

function internal(cause: unknown): ServiceError {
  return errors.internal('The platform failed.', { cause });
}
