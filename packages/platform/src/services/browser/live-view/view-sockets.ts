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

/** A session and whoever watches it. */
interface Watched {
  lease: Lease;
  record: SessionRecord;
  ticket: ViewTicket;
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
  readonly #viewers = new Map<string, Set<Viewer>>();

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
    for (const viewer of this.#viewers.get(sessionId) ?? []) viewer.automationChanged(status);
  }

  async #open(opening: SocketOpening, path: StreamPath, ticket: ViewTicket): Promise<void> {
    const { principal, signal, require } = opening;
    const { accountId } = ticket;
    const browser = await this.#deps.browsers.get(path.browserId, accountId);
    const caller = { accountId, owner: ownerOf(principal), administers: () => mayAdminister(require, browser.arn) };
    const { lease, record } = await this.#deps.sessions.lease(browser, caller, path.sessionId, signal);
    try {
      if ((this.#viewers.get(path.sessionId)?.size ?? 0) >= MAX_VIEWERS)
        throw errors.throttling(`Session ${path.sessionId} is watched by ${MAX_VIEWERS} people already.`);
      await this.#watch(opening, { lease, record, ticket });
    } catch (error) {
      lease.release();
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
    const client = await new Promise<WebSocket>((resolve) => this.#server.handleUpgrade(req, socket, head, resolve));
    client.on('error', () => client.terminate());
    const closed = new Promise<void>((resolve) => client.once('close', () => resolve()));
    opened({ close: (code, reason, graceMs) => closeSocket(client, code, reason, graceMs), closed });
    const calm = keepAlive(client, PING_EVERY_MS, clock);
    const viewer = this.#viewer(client, cdp, { ...of, require }, over.signal);
    const forget = this.#note(of.record.sessionId, viewer);
    void closed.then(() => {
      calm();
      viewer.stop();
      forget();
      over.abort(new Error('nobody watches any more'));
      cdp.close();
      of.lease.release();
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
    { lease, record, ticket, require }: Watched & Pick<SocketOpening, 'require'>,
    signal: AbortSignal,
  ): Viewer {
    const { sessions, tickets, automationChanged, clock } = this.#deps;
    const { browserId: browser, sessionId: session } = ticket;
    return new Viewer({
      ...{ socket, cdp, clock, signal },
      host: new BrowserHost(lease.connection),
      readOnly: ticket.mode === 'read-only',
      automation: record.automation,
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

  #note(sessionId: string, viewer: Viewer): () => void {
    const all = this.#viewers.get(sessionId) ?? new Set();
    this.#viewers.set(sessionId, all.add(viewer));
    return () => {
      all.delete(viewer);
      if (all.size === 0 && this.#viewers.get(sessionId) === all) this.#viewers.delete(sessionId);
    };
  }
}
