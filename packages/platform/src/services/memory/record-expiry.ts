import { type control, errors } from '@agentplatform/contract';

/** How long a record is kept from the moment it was written, or written to again. */
export interface RecordExpiry {
  days: number;
  /** When it is gone. */
  at: Date;
}

/** The right to say how long records are kept, beside that to write them (vendor's guide: "Set a time-to-live for long-term memory records"). */
export const EXPIRY_ACTION = 'bedrock-agentcore:UpdateMemoryRecordExpirySpecification';

/** A hundred years: later moments are none that every client can say. */
const MAX_DAYS = 36_500;
const DAY_MS = 86_400_000;

/** The expiry of a record that is written `now`; undefined without days. */
export function expiryFrom(now: Date, days: number | undefined): RecordExpiry | undefined {
  return days === undefined ? undefined : { days, at: new Date(now.getTime() + days * DAY_MS) };
}

/** What a specification asks for: that many days, or `'never'`. Throws a ValidationException that names `field`. */
export function wantedExpiry(specification: control.RecordExpirySpecification, field: string): number | 'never' {
  const days = specification.recordExpiryDurationDays;
  if (days === undefined) return 'never';
  if (days <= MAX_DAYS) return days;
  throw errors.invalidField(`${field}.recordExpiryDurationDays`, `must be at most ${MAX_DAYS}, a hundred years`);
}

/** The days that new records are given; undefined when none are asked for. Throws a ValidationException: there is nothing to remove yet. */
export function newExpiry(
  specification: control.RecordExpirySpecification | undefined,
  field: string,
): number | undefined {
  if (specification === undefined) return undefined;
  const wanted = wantedExpiry(specification, field);
  if (wanted !== 'never') return wanted;
  throw errors.invalidField(`${field}.action`, 'can only be given for what has an expiry already');
}

/** Whether any of the strategies, new ones or changes, says how long its records are kept. */
export function namesExpiry(
  strategies: readonly (control.MemoryStrategyInput | control.ModifyMemoryStrategyInput)[] = [],
): boolean {
  return strategies.some((strategy) =>
    [strategy, ...Object.values(strategy)].some(
      (part) => typeof part === 'object' && part !== null && 'recordExpirySpecification' in part,
    ),
  );
}
