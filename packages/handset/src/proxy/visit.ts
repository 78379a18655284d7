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
  /** Whether the phone has sent an event. */
  readonly used: boolean;
  /** False once its page has crashed or was closed. */
  readonly alive: boolean;
  /** Give the page an event; with `shows` return the page after it, too. */
  trip(event: PhoneEvent, shows: boolean): Promise<Trip>;
  /** Go on with a new page of the application: what is asked for next comes from it. */
  renew(): void;
  close(): Promise<void>;
}

export interface Trip {
  readonly html?: string;
  readonly label: string;
  readonly locals: readonly string[];
}

export interface VisitOptions {
  readonly id: string;
  readonly page: LivePage;
  readonly open: () => Promise<LivePage>;
  readonly read: ReadFile;
  /** The script of the flat document. */
  readonly script: string;
}

const MAX_WAITING = 4;

export function createVisit({ id, page: first, open, read, script }: VisitOptions): Visit {
  const eventPath = `/v/${id}/event`;
  let page = first;
  // Only what a document offered may be replayed: a phone cannot bring texts of its own into the page.
  const offered = new Set<string>();
  const inTurn = createTurns();
  const state = { shown: false, used: false, outdated: false, closed: false };

  /** The page of the application as it is now. An event meant for the page before it finds a document that was shown to nobody. */
  const currentPage = async (): Promise<LivePage> => {
    if (!state.outdated) return page;
    state.outdated = false;
    const before = page;
    page = await open();
    await before.close().catch(() => undefined);
    if (state.closed) await page.close();
    return page;
  };

  const document = async (): Promise<string> => {
    const snapshot = await (await currentPage()).snapshot(eventPath);
    offered.clear();
    for (const action of snapshot.locals) offered.add(action);
    state.shown = true;
    return flatDocument(snapshot, read, script, eventPath);
  };

  return {
    id,
    document: () => inTurn(document),
    get shown() {
      return state.shown;
    },
    get used() {
      return state.used;
    },
    get alive() {
      return state.outdated || page.alive;
    },
    trip: (event, shows) =>
      inTurn(async () => {
        state.used = true;
        const locals = event.locals.filter((action) => offered.has(action));
        const label = await (await currentPage()).deliver({ ...event, locals });
        return shows ? { html: await document(), label, locals } : { label, locals };
      }),
    renew() {
      state.outdated = true;
    },
    close() {
      state.closed = true;
      return page.close().catch(() => undefined);
    },
  };
}

/** One after the other: an event is given to the page that its sender saw. Throws `visits-full` where too many wait. */
function createTurns(): <T>(work: () => Promise<T>) => Promise<T> {
  let queue: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return (work) => {
    if (waiting >= MAX_WAITING) {
      const message = 'This visit has too many requests waiting.';
      const remedy = 'Wait for the answer that is on its way.';
      return Promise.reject(new ProblemError('visits-full', { message, remedy }));
    }
    waiting += 1;
    const result = queue.then(work).finally(() => {
      waiting -= 1;
    });
    queue = result.catch(() => undefined);
    return result;
  };
}
