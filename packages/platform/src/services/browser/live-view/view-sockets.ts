import type { IncomingMessage } from 'node:http';
import { type data, errors } from '@agentplatform/contract';
import type { Logger } from 'pino';
import { type WebSocket, WebSocketServer } from 'ws';
import { ownerOf } from '../../../kernel/auth/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import {
  closeSocket,
  keepAlive,
  type SocketOpening,
  type SocketRequest,
  type SocketService,
} from '../../../kernel/http/index.ts';
import { exitedSoon, type Lease } from '../../../kernel/sessions/index.ts';
import { browserArn } from '../browser.ts';
import { BrowserHost } from '../browser-host.ts';
import type { BrowserSessions } from '../browser-sessions.ts';
import type { Browsers } from '../browsers.ts';
import { mayAdminister } from '../callers.ts';
import { CdpClient } from '../cdp-client.ts';
import type { SessionRecord } from '../session-records.ts';
import { type StreamPath, streamPath } from '../stream-path.ts';
import type { ViewTicket, ViewTickets } from './tickets.ts';
import { VIEW_ACTION } from './view-routes.ts';
import { Viewer } from './viewer.ts';

export interface ViewSocketsDeps {
  browsers: Pick<Browsers, 'get'>;
  sessions: Pick<BrowserSessions, 'lease' | 'setAutomation'>;
  tickets: ViewTickets;
  /** Whether programs may drive a session was changed: tells all who are connected to it. */
  automationChanged(sessionId: string, status: data.AutomationStreamStatus): void;
  clock: Clock;
  region: string;
  log: Logger;
}

/** One person who watches a session, from before his connection is open. */
interface Place {
  viewer?: Viewer;
  /** Whether programs may drive the session, where that has changed meanwhile. */
  automation?: data.AutomationStreamStatus;
}

/** A session and whoever watches it. */
interface Watched {
  lease: Lease;
  record: SessionRecord;
  ticket: ViewTicket;
  place: Place;
  /** Gives back the lease and the place. */
  leave(): void;
}

const PORT = 8080;
/** How the page offers its ticket, which follows as the next word. */
const PROTOCOL = 'agentplatform.live-view';
const MAX_MESSAGE_BYTES = 64 * 2 ** 20;
const PING_EVERY_MS = 30_000;
/** What taking control asks for, as the operation does. */
const UPDATE_ACTION = 'bedrock-agentcore:UpdateBrowserStream';
const MAX_VIEWERS = 20;
/** How long after its browser a session ends that ends. */
const EXITS_WITHIN_MS = 3000;
/** Close codes of ours (RFC 6455, 7.4.2): the session is over; its browser starts again, and the page may come back. */
const OVER = 4004;
const STARTS_AGAIN = 4012;

/** WebSockets of the page of the live view. */
export class ViewSockets implements SocketService {
  readonly #deps: ViewSocketsDeps;
  readonly #server: WebSocketServer;
  readonly #places = new Map<string, Set<Place>>();

  constructor(deps: ViewSocketsDeps) {
    this.#deps = deps;
    this.#server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: MAX_MESSAGE_BYTES,
      handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : false),
    }).on('error', (error) => deps.log.error({ err: error }, 'the server of live views failed'));
  }

  read(req: IncomingMessage): SocketRequest | undefined {
    const path = streamPath(req.url ?? '', 'live-view');
    if (!path) return undefined;
    const { tickets, region } = this.#deps;
    const [protocol, sealed = ''] = (req.headers['sec-websocket-protocol'] ?? '').split(',').map((word) => word.trim());
    if (protocol !== PROTOCOL)
      throw errors.accessDenied('The live view is opened by its page.', {
        remedy: 'Open the presigned address of the live view in a browser.',
      });
    const ticket = tickets.read(sealed, path);
    const resource = browserArn(path.browserId, region, ticket.accountId);
    return {
      operation: VIEW_ACTION,
      headersToVerify: [],
      resources: () => [resource],
      bearer: () => tickets.holder(ticket),
      open: (opening) => this.#open(opening, path, ticket),
    };
  }

  /** Tells who watch that session here. */
  automationChanged(sessionId: string, status: data.AutomationStreamStatus): void {
    for (const place of this.#places.get(sessionId) ?? []) {
      place.automation = status;
      place.viewer?.automationChanged(status);
    }
  }

  async #open(opening: SocketOpening, path: StreamPath, ticket: ViewTicket): Promise<void> {
    const { principal, signal, require } = opening;
    const { accountId } = ticket;
    const place: Place = {};
    const forget = this.#take(path.sessionId, place);
    let lease: Lease | undefined;
    const leave = (): void => {
      forget();
      lease?.release();
    };
    try {
      const browser = await this.#deps.browsers.get(path.browserId, accountId);
      const caller = { accountId, owner: ownerOf(principal), administers: () => mayAdminister(require, browser.arn) };
      const found = await this.#deps.sessions.lease(browser, caller, path.sessionId, signal);
      lease = found.lease;
      await this.#watch(opening, { ...found, ticket, place, leave });
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Shows the session until either goes; the lease is held until then. */
  async #watch({ req, socket, head, opened, require }: SocketOpening, of: Watched): Promise<void> {
    const { clock, log } = this.#deps;
    const over = new AbortController();
    const cdp = await CdpClient.open(of.lease.sandbox.address(PORT), over.signal).catch((cause: unknown) => {
      throw errors.internal('The browser of the session does not answer; it may be starting again.', { cause });
    });
    const client = this.#accept(req, socket, head);
    if (!client) {
      cdp.close();
      of.leave();
      return;
    }
    client.on('error', () => client.terminate());
    const closed = new Promise<void>((resolve) => client.once('close', () => resolve()));
    opened({ close: (code, reason, graceMs) => closeSocket(client, code, reason, graceMs), closed });
    const calm = keepAlive(client, PING_EVERY_MS, clock);
    const viewer = this.#viewer(client, cdp, { ...of, require }, over.signal);
    of.place.viewer = viewer;
    void closed.then(() => {
      calm();
      viewer.stop();
      over.abort(new Error('nobody watches any more'));
      cdp.close();
      of.leave();
    });
    const { sandbox } = of.lease;
    void sandbox.exited.then(() => closeSocket(client, OVER, 'the session has ended'));
    void cdp.closed.then(async () => {
      if (!(await exitedSoon(sandbox, EXITS_WITHIN_MS)))
        closeSocket(client, STARTS_AGAIN, 'the browser has broken down, and starts again');
    });
    viewer.start().catch((error: unknown) => {
      log.debug({ err: error }, 'a live view did not begin');
      closeSocket(client, STARTS_AGAIN, 'the browser does not answer');
    });
  }

  #viewer(
    socket: WebSocket,
    cdp: CdpClient,
    { lease, record, ticket, place, require }: Watched & Pick<SocketOpening, 'require'>,
    signal: AbortSignal,
  ): Viewer {
    const { sessions, tickets, automationChanged, clock } = this.#deps;
    const { browserId: browser, sessionId: session } = ticket;
    return new Viewer({
      ...{ socket, cdp, clock, signal },
      host: new BrowserHost(lease.connection),
      readOnly: ticket.mode === 'read-only',
      automation: place.automation ?? record.automation,
      async setAutomation(status) {
        await require(UPDATE_ACTION, record.browserArn);
        await sessions.setAutomation(record, status);
        automationChanged(session, status);
      },
      share() {
        const mode = 'read-only';
        return String(new URLSearchParams({ browser, session, mode, ticket: tickets.issue({ ...ticket, mode }) }));
      },
    });
  }

  /** Undefined when it is no proper handshake, or the client is gone: then it is answered already. */
  #accept(req: IncomingMessage, socket: SocketOpening['socket'], head: Buffer): WebSocket | undefined {
    let client: WebSocket | undefined;
    this.#server.handleUpgrade(req, socket, head, (accepted) => {
      client = accepted;
    });
    return client;
  }

  /** Takes a place to watch that session from, and gives what leaves it. Throws ThrottlingException where all are taken. */
  #take(sessionId: string, place: Place): () => void {
    const all = this.#places.get(sessionId) ?? new Set();
    if (all.size >= MAX_VIEWERS)
      throw errors.throttling(`Session ${sessionId} is watched by ${MAX_VIEWERS} people already.`);
    this.#places.set(sessionId, all.add(place));
    return () => {
      all.delete(place);
      if (all.size === 0 && this.#places.get(sessionId) === all) this.#places.delete(sessionId);
    };
  }
}
