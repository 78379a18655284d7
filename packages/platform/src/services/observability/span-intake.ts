import { errors } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import { RateLimiter } from '../../kernel/http/index.ts';
import type { Journal } from '../../kernel/journal/index.ts';
import type { OtlpSpan } from './otlp/index.ts';
import type { ContentRules } from './settings.ts';
import { refusalOf, rowOf, type Sender, type SpanRow } from './span-row.ts';

export interface SpanIntakeDeps {
  journal: Pick<Journal<Record<string, unknown>>, 'append'>;
  clock: Clock;
  content: ContentRules;
  /** Of one agent; 0 for no limit. */
  spansPerSecond: number;
  redact(text: string): string;
}

/** What became of a request's spans. */
export interface Taken {
  accepted: number;
  rejected: number;
  /** Why the last of those was rejected. */
  why: string;
}

/** Name of the journal's records. */
export const SPANS = 'spans';
/** Of JSON in one record of the journal, which takes four times as much. */
const RECORD_CHARS = 250_000;
/** In one request; the rest is rejected. */
const MOST_SPANS = 20_000;

/**
 * Takes spans in: each is checked and bounded, and is on the disk before its sender is told that it was accepted. An agent that sends more than its
 * share per second has the rest rejected, which is counted; nobody else waits for it.
 */
export class SpanIntake {
  readonly #deps: SpanIntakeDeps;
  readonly #rates: RateLimiter;
  #shed = 0;
  #refused = 0;

  constructor(deps: SpanIntakeDeps) {
    this.#deps = deps;
    this.#rates = new RateLimiter(deps.spansPerSecond, deps.clock);
  }

  /** Spans that were rejected because their agent sent too many, and those that are no spans. */
  get counts(): { shed: number; refused: number } {
    return { shed: this.#shed, refused: this.#refused };
  }

  /** Resolves when the accepted ones are on the disk. Throws ThrottlingException when none is, and ServiceUnavailableException while the disk takes nothing. */
  async take(spans: Iterable<OtlpSpan>, sender: Sender): Promise<Taken> {
    const { clock, content, redact } = this.#deps;
    const receipt = { sender, at: clock.now(), content: content.of.get(sender.agent) ?? content.usual, redact };
    const taken: Taken = { accepted: 0, rejected: 0, why: '' };
    const share = `${sender.accountId} ${sender.agent}`;
    let rows: SpanRow[] = [];
    let chars = 0;
    const writes: Promise<void>[] = [];
    const write = (): void => {
      if (rows.length > 0) writes.push(this.#write(rows));
      rows = [];
      chars = 0;
    };
    for (const span of spans) {
      const why = refusalOf(span) ?? this.#overShare(share, taken);
      if (why !== undefined) {
        taken.rejected += 1;
        taken.why = why;
        continue;
      }
      taken.accepted += 1;
      const row = rowOf(span, receipt);
      const length = row.detail.length + 1_000;
      if (chars + length > RECORD_CHARS) write();
      rows.push(row);
      chars += length;
    }
    write();
    await Promise.all(writes);
    return taken;
  }

  #overShare(share: string, { accepted }: Taken): string | undefined {
    if (accepted >= MOST_SPANS) return `a request has at most ${MOST_SPANS} spans`;
    const seconds = this.#rates.tryTake(share);
    if (seconds === 0) return undefined;
    this.#shed += 1;
    return `an agent may send ${this.#rates.perSecond} spans per second (observability.spansPerSecond)`;
  }

  async #write(rows: SpanRow[]): Promise<void> {
    try {
      await this.#deps.journal.append(SPANS, { rows });
    } catch (cause) {
      throw errors.unavailable('Spans cannot be stored now.', {
        remedy: 'Send them again; an OpenTelemetry exporter does so by itself.',
        retryAfterSeconds: 5,
        cause,
      });
    }
  }

  /** A request that could not be read. */
  refuse(): void {
    this.#refused += 1;
  }
}
