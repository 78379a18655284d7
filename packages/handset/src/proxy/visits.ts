import { randomBytes } from 'node:crypto';
import { ProblemError } from '../problem.ts';
import { flatDocument } from './flat-document.ts';
import type { LivePage } from './live-page.ts';
import type { ReadFile } from './local-file.ts';
import type { PhoneEvent } from './phone-event.ts';

/** One phone's visit: a live page, and the documents made of it. */
export interface Visit {
  /** 128 random bits: who knows it may continue the visit. */
  readonly id: string;
  /** The page as it is now. */
  document(): Promise<string>;
  /** Whether the phone was sent a document before. */
  readonly shown: boolean;
  /** Give the page an event; with `shows` return the page after it, too. */
  trip(
    event: PhoneEvent,
    shows: boolean,
  ): Promise<{ readonly html?: string; readonly label: string; readonly locals: readonly string[] }>;
}

export interface Visits {
  /** Begin a visit. Throws `visits-full`. */
  begin(): Promise<Visit>;
  /** A visit that is still going on. */
  find(id: string): Visit | undefined;
  readonly count: number;
  close(): Promise<void>;
}

export interface VisitsOptions {
  readonly open: () => Promise<LivePage>;
  readonly read: ReadFile;
  /** The script of the flat document. */
  readonly script: string;
  readonly limit: number;
  /** Milliseconds without a request after which a visit ends. */
  readonly idle: number;
  readonly now: () => number;
}

/** A visit that has been idle for this long makes room when the proxy is full. */
const YIELD_MS = 60_000;
const MAX_WAITING = 4;

interface Entry {
  readonly visit: Visit;
  readonly page: LivePage;
  used: number;
}

export function createVisits({ open, read, script, limit, idle, now }: VisitsOptions): Visits {
  const entries = new Map<string, Entry>();
  let opening = 0;

  const end = async (id: string): Promise<void> => {
    const entry = entries.get(id);
    entries.delete(id);
    await entry?.page.close().catch(() => undefined);
  };
  const sweep = (): void => {
    for (const [id, { used, page }] of entries) if (now() - used > idle || !page.alive) void end(id);
  };
  const timer = setInterval(sweep, Math.min(idle, 15_000));
  timer.unref();

  const makeRoom = (): void => {
    sweep();
    if (entries.size + opening < limit) return;
    const [oldest] = [...entries].sort(([, a], [, b]) => a.used - b.used);
    if (!oldest || now() - oldest[1].used < YIELD_MS) {
      throw new ProblemError('visits-full', { message: `All ${limit} visits are taken.` });
    }
    void end(oldest[0]);
  };

  return {
    async begin() {
      makeRoom();
      opening += 1;
      try {
        const page = await open();
        const id = randomBytes(16).toString('hex');
        const visit = createVisit(id, page, read, script);
        entries.set(id, { visit, page, used: now() });
        return visit;
      } finally {
        opening -= 1;
      }
    },
    find(id) {
      const entry = entries.get(id);
      if (!entry?.page.alive || now() - entry.used > idle) return undefined;
      entry.used = now();
      return entry.visit;
    },
    get count() {
      return entries.size;
    },
    async close() {
      clearInterval(timer);
      await Promise.all([...entries.keys()].map(end));
    },
  };
}

function createVisit(id: string, page: LivePage, read: ReadFile, script: string): Visit {
  const eventPath = `/v/${id}/event`;
  // Only what a document offered may be replayed: a phone cannot bring texts of its own into the page.
  const offered = new Set<string>();
  let queue: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  let shown = false;

  const document = async (): Promise<string> => {
    const snapshot = await page.snapshot(eventPath);
    offered.clear();
    for (const action of snapshot.locals) offered.add(action);
    shown = true;
    return flatDocument(snapshot, read, script, eventPath);
  };

  /** One after the other: an event is given to the page that its sender saw. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    if (waiting >= MAX_WAITING) {
      return Promise.reject(
        new ProblemError('visits-full', {
          message: 'This visit has too many requests waiting.',
          remedy: 'Wait for the answer that is on its way.',
        }),
      );
    }
    waiting += 1;
    const result = queue.then(work).finally(() => {
      waiting -= 1;
    });
    queue = result.catch(() => undefined);
    return result;
  };

  return {
    id,
    document: () => inTurn(document),
    get shown() {
      return shown;
    },
    trip: (event, shows) =>
      inTurn(async () => {
        const locals = event.locals.filter((action) => offered.has(action));
        const label = await page.deliver({ ...event, locals });
        return shows ? { html: await document(), label, locals } : { label, locals };
      }),
  };
}
