import { randomBytes } from 'node:crypto';
import { ProblemError } from '../problem.ts';
import type { LivePage } from './live-page.ts';
import type { ReadFile } from './local-file.ts';
import { createVisit, type Visit } from './visit.ts';

export interface Visits {
  /** Begin a visit. Throws `visits-full`. */
  begin(): Promise<Visit>;
  /** A visit that is still going on. */
  find(id: string): Visit | undefined;
  /** A visitor has left the document: the visit ends soon, unless it is found again. */
  leave(id: string): void;
  /** The application has changed: each visit goes on with a new page. */
  renew(): void;
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

/** A visit that has been idle for this long makes room when the proxy is full; one that was left, or only looked at, at once. */
const YIELD_MS = 60_000;
/** Loading a document again leaves it first. */
const LEFT_MS = 5_000;
const SWEEP_MS = 1_000;

interface Entry {
  readonly visit: Visit;
  /** When it was asked for last. */
  at: number;
  left: boolean;
}

export function createVisits({ open, read, script, limit, idle, now }: VisitsOptions): Visits {
  const entries = new Map<string, Entry>();
  let opening = 0;

  const end = async (id: string): Promise<void> => {
    const entry = entries.get(id);
    entries.delete(id);
    await entry?.visit.close();
  };
  const isOver = ({ visit, at, left }: Entry): boolean =>
    !visit.alive || now() - at > (left ? Math.min(LEFT_MS, idle) : idle);
  const sweep = (): void => {
    for (const [id, entry] of entries) if (isOver(entry)) void end(id);
  };
  const timer = setInterval(sweep, Math.min(idle, SWEEP_MS));
  timer.unref();

  const makeRoom = (): void => {
    sweep();
    if (entries.size + opening < limit) return;
    const yields = [...entries].filter(([, e]) => e.left || !e.visit.used || now() - e.at >= YIELD_MS);
    const [first] = yields.sort(([, a], [, b]) => Number(b.left) - Number(a.left) || a.at - b.at);
    if (!first) throw new ProblemError('visits-full', { message: `All ${limit} visits are taken.` });
    void end(first[0]);
  };

  return {
    async begin() {
      makeRoom();
      opening += 1;
      try {
        const page = await open();
        const visit = createVisit({ id: randomBytes(16).toString('hex'), page, open, read, script });
        entries.set(visit.id, { visit, at: now(), left: false });
        return visit;
      } finally {
        opening -= 1;
      }
    },
    find(id) {
      const entry = entries.get(id);
      if (!entry || isOver(entry)) return undefined;
      Object.assign(entry, { at: now(), left: false });
      return entry.visit;
    },
    leave(id) {
      const entry = entries.get(id);
      if (entry) Object.assign(entry, { at: now(), left: true });
    },
    renew() {
      for (const { visit } of entries.values()) visit.renew();
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
