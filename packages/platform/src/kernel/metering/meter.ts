import type { Clock } from '../clock.ts';
import type { Journal } from '../journal/index.ts';
import type { Metered } from './metered.ts';
import { dayOf } from './session-seconds.ts';
import { type Unit, units } from './units.ts';

/** What is counted by the piece that does it, one or more at a time; it reaches the database by the journal, each once. */
export interface Meter {
  /** Takes the count without waiting. */
  count(unit: Unit, whose: Counted, quantity?: number): void;
}

/** Whose it is; what is not known is left out. */
export interface Counted {
  accountId: string;
  resourceArn?: string | undefined;
  sessionId?: string | undefined;
  userId?: string | undefined;
}

/** Name of the journal's records of this kind. */
export const METERED = 'metered';

export function createMeter({
  journal,
  clock,
}: {
  journal: Pick<Journal<Record<string, unknown>>, 'record'>;
  clock: Pick<Clock, 'now'>;
}): Meter {
  return {
    count(unit, whose, quantity = 1) {
      if (quantity > 0) journal.record(METERED, counted(unit, whose, { at: clock.now(), quantity }));
    },
  };
}

/** So many of a unit at one moment, in milliseconds since the epoch. */
export function counted(
  unit: Unit,
  { accountId, resourceArn = '', sessionId = '', userId = '' }: Counted,
  { at, quantity = 1 }: { at: number; quantity?: number },
): Metered {
  return { day: dayOf(at), accountId, piece: units[unit].piece, resourceArn, sessionId, userId, unit, quantity };
}
