import { assumedRoleArn } from '../auth/index.ts';
import type { Clock } from '../clock.ts';
import { addressKey } from './address-key.ts';
import type { AuditRecord } from './audit-record.ts';

export interface AuditTrailDeps {
  /** Takes a record without waiting. */
  record(record: AuditRecord): void;
  newRequestId(): string;
  clock: Clock;
}

/** Refusals that are alike: what is kept of them singly, and how many more there were. */
interface Alike {
  /** What they have in common. */
  common: AuditRecord;
  kept: number;
  more: number;
  /** When the first and the last of those counted were. */
  from: number;
  until: number;
}

/** How long refusals that are alike are counted together, in milliseconds. */
const INTERVAL_MS = 5 * 60_000;
/**
 * Of these so many are kept singly in an interval, the rest as one count: without credentials, of a known caller, and of one for whom something
 * may have been done.
 */
const SINGLY = { unknown: 1, known: 20, maybeDone: 100 };
/**
 * Kinds of refusals told apart in one interval: of callers nobody knows in all and of one address, and beside them of known callers in all
 * and of one. The rest is counted by status, and by caller where he is known.
 */
const MAX_KINDS = { unknown: { all: 500, ofOne: 50 }, known: { all: 1000, ofOne: 50 } };
/** Known callers whose rest is counted by name; of more it is counted by role, or by who vouches for them. */
const MAX_NAMES = 500;
/** Counts that are held at once; what was counted until then is kept early. */
const MAX_COUNTS = 10_000;
/** What stands for the operation where kinds are not told apart. */
const OTHER = 'other';

/**
 * The agent's code ran, or the platform began to work and the client did not wait for it: something may have been done. Whoever may call an agent
 * can have as many of these as he likes.
 */
const MAYBE_DONE = new Set([424, 499]);

/**
 * The way of every record into the audit trail. What was done is kept one by one; refusals that are alike (source address, caller,
 * operation, answer) are counted once there are many, so that nobody fills the disk by being refused, and so are calls that failed in the agent or that
 * their client left, once there are more; no count of known callers leaves out
 * whose it is, and callers nobody knows take no room from them. Counts are kept at the end of
 * each interval; a killed server loses those of the interval under way.
 */
export class AuditTrail {
  readonly #deps: AuditTrailDeps;
  readonly #kinds = new Map<string, Alike>();
  readonly #unknown = new Shares(MAX_KINDS.unknown);
  readonly #known = new Shares(MAX_KINDS.known);
  /** Whose rest is counted by name. */
  readonly #names = new Set<string>();
  #cancel: (() => void) | undefined;

  constructor(deps: AuditTrailDeps) {
    this.#deps = deps;
  }

  take(record: AuditRecord): void {
    if (!isCounted(record) || this.#isKeptSingly(record)) this.#deps.record(record);
  }

  /** Keeps what was counted; an orderly end must not lose it. */
  close(): void {
    this.#cancel?.();
    this.#keep();
  }

  /** Counts it if not. */
  #isKeptSingly(record: AuditRecord): boolean {
    const alike = this.#alike(record);
    if (alike.kept < singlyOf(record)) {
      alike.kept += 1;
      return true;
    }
    if (alike.more === 0) alike.from = record.at;
    alike.more += 1;
    alike.until = record.at;
    return false;
  }

  #alike(record: AuditRecord): Alike {
    const { sourceIp = '', principal = '', operation, status, errorCode = '' } = record;
    const key = JSON.stringify([sourceIp, principal, operation, status, errorCode]);
    const known = this.#kinds.get(key);
    if (known) return known;
    const told =
      record.principal === undefined ? this.#unknown.take(addressKey(sourceIp)) : this.#known.take(principal);
    if (!told) return this.#other(record);
    return this.#add(key, { ...record, resource: undefined, userAgent: undefined }, 0);
  }

  /** Beside the kinds that are told apart; none of it is kept singly. */
  #other(record: AuditRecord): Alike {
    const principal = record.principal === undefined ? undefined : this.#nameOf(record.principal);
    const accountId = principal === undefined ? undefined : record.accountId;
    const key = JSON.stringify([OTHER, accountId, principal, record.status]);
    const known = this.#kinds.get(key);
    if (known) return known;
    const rest = { errorCode: undefined, sourceIp: undefined, resource: undefined, userAgent: undefined };
    return this.#add(key, { ...record, ...rest, accountId, principal, operation: OTHER }, Number.POSITIVE_INFINITY);
  }

  #nameOf(principal: string): string {
    if (this.#names.size >= MAX_NAMES && !this.#names.has(principal)) return familyOf(principal);
    this.#names.add(principal);
    return principal;
  }

  #add(key: string, common: AuditRecord, kept: number): Alike {
    if (this.#kinds.size >= MAX_COUNTS) this.close();
    const alike = { common, kept, more: 0, from: common.at, until: common.at };
    this.#kinds.set(key, alike);
    this.#cancel ??= this.#deps.clock.after(INTERVAL_MS, () => this.#keep());
    return alike;
  }

  #keep(): void {
    this.#cancel = undefined;
    const { record, newRequestId } = this.#deps;
    for (const { common, more, from, until } of this.#kinds.values())
      if (more > 0) record({ ...common, requestId: newRequestId(), at: from, count: more, until });
    this.#kinds.clear();
    this.#unknown.clear();
    this.#known.clear();
    this.#names.clear();
  }
}

/** A bounded number, of which nobody has more than his share. */
class Shares {
  readonly #max: { all: number; ofOne: number };
  readonly #taken = new Map<string, number>();
  #all = 0;

  constructor(max: { all: number; ofOne: number }) {
    this.#max = max;
  }

  /** Whether there was one left for him. */
  take(whose: string): boolean {
    const taken = this.#taken.get(whose) ?? 0;
    if (this.#all >= this.#max.all || taken >= this.#max.ofOne) return false;
    this.#all += 1;
    this.#taken.set(whose, taken + 1);
    return true;
  }

  clear(): void {
    this.#all = 0;
    this.#taken.clear();
  }
}

/** Whom callers with names that they may choose have in common: their role, or who vouches for them. */
function familyOf(principal: string): string {
  if (principal.startsWith('arn:')) return assumedRoleArn(principal);
  return `${principal.slice(0, principal.indexOf('#'))}#*`;
}

/** The disk, the database or the server's hold on its sessions is gone for now: answered before anything was done. */
const UNAVAILABLE = 503;

/** Whether many of these are counted together: nothing was done, or nobody knows. Of an unknown caller nothing ever is. */
function isCounted({ status, principal }: AuditRecord): boolean {
  if (status < 400) return false;
  return principal === undefined || status === UNAVAILABLE || status < 500;
}

function singlyOf({ status, principal }: AuditRecord): number {
  if (principal === undefined) return SINGLY.unknown;
  return MAYBE_DONE.has(status) ? SINGLY.maybeDone : SINGLY.known;
}
