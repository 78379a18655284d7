import type { Logger } from 'pino';
import type { Clock } from '../../../kernel/clock.ts';
import { every } from '../../../kernel/every.ts';
import { exitedSoon, type Lease } from '../../../kernel/sessions/index.ts';
import { BrowserHost } from '../browser-host.ts';
import { CdpClient, type CdpEvent } from '../cdp-client.ts';
import { FrontPage } from '../front-page.ts';
import { addressOf, entryOf, type RecordedEntry } from './recorded-entry.ts';

export interface RecorderDeps {
  lease: Lease;
  /** Stores entries under a name that sorts by time. Rejects when it cannot. */
  store(name: string, entries: readonly RecordedEntry[]): Promise<void>;
  clock: Clock;
  log: Logger;
}

const PORT = 8080;
const PICTURES = { perSecond: 5, quality: 50 };
/** What is not stored is lost with the server. */
const STORE_EVERY_MS = 1000;
/** Of entries that wait to be stored, about; beyond it pictures are left out, and beyond twice as much everything. */
const MAX_WAITING_BYTES = 16 * 2 ** 20;
const CONNECT_AGAIN_MS = 500;
/** How long after its browser a session ends that ends. */
const EXITS_WITHIN_MS = 3000;

/**
 * Records one session: pictures of the page in front, and what its pages do, each with its time. It is written in segments of a second, so that
 * whatever breaks down, the last second alone is missing.
 */
export class Recorder {
  readonly #deps: RecorderDeps;
  readonly #over = new AbortController();
  #waiting: RecordedEntry[] = [];
  #bytes = 0;
  #segment = 0;
  #stopStoring: () => Promise<void> = async () => undefined;

  constructor(deps: RecorderDeps) {
    this.#deps = deps;
  }

  /** Records until the session is over, or `stop`. Never rejects. */
  async run(): Promise<void> {
    const { lease, clock, log } = this.#deps;
    this.#stopStoring = every(clock, STORE_EVERY_MS, 'store a part of a recording', () => this.#store(), log);
    void lease.sandbox.exited.then(() => this.#over.abort(new Error('the session is over')));
    while (!this.#over.signal.aborted) {
      await this.#watch().catch((error: unknown) => log.debug({ err: error }, 'a recording begins again'));
      if (!this.#over.signal.aborted) await this.#pause();
    }
    await this.#stopStoring();
    await this.#store().catch((error: unknown) => log.warn({ err: error }, 'the end of a recording is lost'));
  }

  stop(): void {
    this.#over.abort(new Error('the recording is over'));
  }

  /** Something that the platform saw itself. */
  add(entry: RecordedEntry): void {
    const bytes = JSON.stringify(entry).length;
    const most = entry.kind === 'picture' ? MAX_WAITING_BYTES : 2 * MAX_WAITING_BYTES;
    if (this.#bytes + bytes > most) return;
    this.#bytes += bytes;
    this.#waiting.push(entry);
  }

  /** From a browser that runs until it is gone. */
  async #watch(): Promise<void> {
    const { lease, clock } = this.#deps;
    const { signal } = this.#over;
    const cdp = await CdpClient.open(lease.sandbox.address(PORT), signal);
    const front = new FrontPage({
      ...{ cdp, clock, signal, pictures: PICTURES },
      host: new BrowserHost(lease.connection),
      onPages: (pages, id) => {
        const page = pages.find((one) => one.id === id);
        this.add({ kind: 'page', at: clock.now(), title: page?.title ?? '', url: addressOf(page?.url) });
      },
      onPicture: ({ jpeg, width, height, seen }) => {
        this.add({ kind: 'picture', at: clock.now(), width, height, jpeg: jpeg.toString('base64') });
        seen();
      },
    });
    /** Each page is heard in one session of the protocol, whoever else of this connection looks at it. */
    const heard = new Map<string, string>();
    const hear = (event: CdpEvent): void => {
      front.hear(event);
      if (event.method === 'Target.attachedToTarget') void listenTo(event, cdp, heard);
      else if (event.method === 'Target.targetDestroyed') heard.delete(String(event.params.targetId));
      const isHeard = [...heard.values()].includes(event.sessionId ?? '');
      const entry = isHeard ? entryOf(event, clock.now()) : undefined;
      if (entry) this.add(entry);
    };
    cdp.listen(hear);
    try {
      const attach = { autoAttach: true, waitForDebuggerOnStart: false, flatten: true };
      await cdp.send('Target.setAutoAttach', attach);
      await front.start();
      await cdp.closed;
      void this.#noteBreak(clock.now());
    } finally {
      front.stop();
      cdp.close();
    }
  }

  /** A browser that breaks down is part of what happened; one that ends with its session is not. */
  async #noteBreak(at: number): Promise<void> {
    const over = this.#over.signal.aborted || (await exitedSoon(this.#deps.lease.sandbox, EXITS_WITHIN_MS));
    const text = 'The connection with the browser ended.';
    if (!over) this.add({ kind: 'console', at, level: 'error', text });
  }

  async #store(): Promise<void> {
    const entries = this.#waiting;
    if (entries.length === 0) return;
    const bytes = this.#bytes;
    [this.#waiting, this.#bytes] = [[], 0];
    this.#segment += 1;
    const name = `${String(entries[0]?.at ?? 0).padStart(14, '0')}-${String(this.#segment).padStart(6, '0')}`;
    try {
      await this.#deps.store(name, entries);
    } catch (error) {
      // They are tried again with what came meanwhile.
      this.#waiting = [...entries, ...this.#waiting];
      this.#bytes += bytes;
      throw error;
    }
  }

  #pause(): Promise<void> {
    const { signal } = this.#over;
    return new Promise((resolve) => {
      const done = (): void => {
        cancel();
        signal.removeEventListener('abort', done);
        resolve();
      };
      const cancel = this.#deps.clock.after(CONNECT_AGAIN_MS, done);
      signal.addEventListener('abort', done, { once: true });
    });
  }
}

/** Has a page say what is recorded of it, unless it is heard already. */
async function listenTo({ params }: CdpEvent, cdp: CdpClient, heard: Map<string, string>): Promise<void> {
  const { sessionId, targetInfo } = params as {
    sessionId?: string;
    targetInfo?: { type?: string; targetId?: string };
  };
  const { type, targetId } = targetInfo ?? {};
  if (sessionId === undefined || targetId === undefined || type !== 'page' || heard.has(targetId)) return;
  heard.set(targetId, sessionId);
  for (const domain of ['Page', 'Network', 'Runtime', 'Log'])
    await cdp.send(`${domain}.enable`, {}, sessionId).catch(() => undefined);
}
