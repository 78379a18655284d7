import type { IncomingMessage } from 'node:http';
import { errors } from '@agentplatform/contract';
import { ownerOf } from '../../kernel/auth/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import {
  acceptUpgrade,
  dialUpgrade,
  type SocketOpening,
  type SocketRequest,
  type SocketService,
  SplicedStream,
} from '../../kernel/http/index.ts';
import { describeExit, exitedSoon, type Lease } from '../../kernel/sessions/index.ts';
import { browserArn } from './browser.ts';
import type { BrowserSessions } from './browser-sessions.ts';
import type { Browsers } from './browsers.ts';
import { mayAdminister } from './callers.ts';
import { presignedQuery, type StreamPath, streamPath } from './stream-path.ts';

export interface AutomationSocketsDeps {
  browsers: Pick<Browsers, 'get'>;
  sessions: Pick<BrowserSessions, 'lease'>;
  /** Who hears what programs say to the browser of that session; undefined where nobody does. */
  listener(sessionId: string): ((text: string) => void) | undefined;
  clock: Clock;
  region: string;
  /** Longest message either way, in bytes; how often a silent peer is asked whether it is there, and how long Chromium may take to answer, in ms. */
  streams: { maxMessageBytes: number; pingIntervalMs: number; handshakeMs: number };
}

/** One connection of a program that drives a browser, from before it is open. */
interface Driving {
  stream: SplicedStream | undefined;
  /** Automation was turned off meanwhile. */
  cut: boolean;
}

const ACTION = 'ConnectBrowserAutomationStream';
const PORT = 8080;
/** A close code of ours (RFC 6455, 7.4.2). */
const AUTOMATION_OFF = 4001;

/** WebSockets of programs that drive a browser by CDP. Signed in their headers alone: an address that lets in whoever has it is for people who look on. */
export class AutomationSockets implements SocketService {
  readonly #deps: AutomationSocketsDeps;
  readonly #driving = new Map<string, Set<Driving>>();

  constructor(deps: AutomationSocketsDeps) {
    this.#deps = deps;
  }

  read(req: IncomingMessage): SocketRequest | undefined {
    const path = streamPath(req.url ?? '', 'automation');
    if (!path) return undefined;
    if (presignedQuery(req.url ?? ''))
      throw errors.accessDenied('The automation stream takes a signature in the headers, and no presigned address.', {
        remedy: 'Sign the handshake with SigV4 headers, as generate_ws_headers does.',
      });
    const { region } = this.#deps;
    return {
      operation: ACTION,
      headersToVerify: withoutRepeatedHost(req.rawHeaders),
      resources: (accountId = '') => [browserArn(path.browserId, region, accountId)],
      open: (opening) => this.#open(opening, path),
    };
  }

  /** Ends every connection to that session: a person has control now. */
  cut(sessionId: string): void {
    for (const driving of this.#driving.get(sessionId) ?? []) {
      driving.cut = true;
      driving.stream?.close(AUTOMATION_OFF, 'automation is turned off: a person has control');
    }
  }

  async #open(opening: SocketOpening, { browserId, sessionId }: StreamPath): Promise<void> {
    const { principal, signal, require } = opening;
    const driving: Driving = { stream: undefined, cut: false };
    const forget = this.#note(sessionId, driving);
    try {
      const { accountId } = principal;
      const browser = await this.#deps.browsers.get(browserId, accountId);
      const caller = { accountId, owner: ownerOf(principal), administers: () => mayAdminister(require, browser.arn) };
      const { lease, record } = await this.#deps.sessions.lease(browser, caller, sessionId, signal);
      try {
        if (record.automation === 'DISABLED' || driving.cut)
          throw errors.conflict(`Automation of session ${sessionId} is turned off: a person has control.`, {
            remedy: 'Turn it on again with UpdateBrowserStream.',
          });
        driving.stream = await this.#splice(opening, lease, this.#deps.listener(sessionId));
      } catch (error) {
        lease.release();
        throw error;
      }
      if (driving.cut) this.cut(sessionId);
      void driving.stream?.closed.then(forget);
      if (!driving.stream) forget();
    } catch (error) {
      forget();
      throw error;
    }
  }

  /** Joins the client with the session's browser; the lease is held until they part. Undefined when the client is gone. */
  async #splice(
    { socket, head, key, signal, span, opened }: SocketOpening,
    lease: Lease,
    onText: ((text: string) => void) | undefined,
  ): Promise<SplicedStream | undefined> {
    const { clock, streams } = this.#deps;
    span.handTo(lease.session);
    const agent = await dialUpgrade({
      address: lease.sandbox.address(PORT),
      path: '/automation',
      headers: [],
      protocols: [],
      handshakeMs: streams.handshakeMs,
      signal,
    }).catch((error: unknown) => {
      if (signal.aborted) throw error;
      throw errors.internal('The browser of the session does not answer; it may be starting again.', { cause: error });
    });
    if (!acceptUpgrade(socket, key, [])) {
      agent.socket.destroy();
      lease.release();
      return undefined;
    }
    const stream = new SplicedStream({
      client: { socket, head },
      agent,
      ...streams,
      clock,
      onText,
      explain: async () =>
        (await exitedSoon(lease.sandbox))
          ? describeExit(lease.sandbox)
          : 'the browser has broken down, and starts again',
    });
    opened(stream);
    void stream.closed.then(() => lease.release());
    return stream;
  }

  #note(sessionId: string, driving: Driving): () => void {
    const all = this.#driving.get(sessionId) ?? new Set();
    this.#driving.set(sessionId, all.add(driving));
    return () => {
      all.delete(driving);
      if (all.size === 0 && this.#driving.get(sessionId) === all) this.#driving.delete(sessionId);
    };
  }
}

/** The vendor's Python client gives its signed Host out beside the one that its caller's WebSocket library sends: one said twice is one. */
function withoutRepeatedHost(raw: readonly string[]): string[] {
  const kept: string[] = [];
  let host: string | undefined;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [name = '', value = ''] = raw.slice(i, i + 2);
    const isHost = name.toLowerCase() === 'host';
    if (isHost && value === host) continue;
    if (isHost) host = value;
    kept.push(name, value);
  }
  return kept;
}
