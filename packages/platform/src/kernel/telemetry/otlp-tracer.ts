import type { IncomingHttpHeaders } from 'node:http';
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { Database } from '../storage/index.ts';
import { DatabaseWait } from './database-wait.ts';
import { refusedIn, traceEncoder } from './otlp.ts';
import { type OtlpTarget, postOtlp } from './otlp-post.ts';
import { RecordedSpan, type SpanKeeper, type SpanStart } from './recorded-span.ts';
import { SandboxContexts } from './sandbox-contexts.ts';
import type { Span } from './span.ts';
import { type Sent, SpanQueue } from './span-queue.ts';
import { readBaggage, readTraceContext } from './trace-context.ts';
import type { TracedCaller, Tracer } from './tracer.ts';

export interface OtlpTracerDeps extends OtlpTarget {
  /** Part of the traces that is recorded, 0 to 1. */
  sampleRatio: number;
  /** What the spans are of, in OpenTelemetry's names. */
  resource: Record<string, string>;
  clock: Clock;
  log: Logger;
}

/** Spans that are sent by OTLP over HTTP. */
export function createOtlpTracer(deps: OtlpTracerDeps): Tracer {
  const { clock, sampleRatio } = deps;
  const queue = new SpanQueue({ ...deps, send: sender(deps) });
  const sandboxes = new SandboxContexts();
  // The wall clock of the start and the monotonic one since: no span is shorter than nothing.
  const offset = clock.now() - clock.monotonic();
  const keeper: SpanKeeper = {
    now: () => offset + clock.monotonic(),
    samples: (traceId) => fractionOf(traceId) < sampleRatio,
    handTo: (session, context) => sandboxes.begin(session, context),
    keep: (span) => queue.add(span),
  };
  const wait = new DatabaseWait(keeper.now);
  const begin = (start: SpanStart): Span => new RecordedSpan(keeper, start);
  return {
    request: (name: string, headers: IncomingHttpHeaders) =>
      begin({ name, kind: 'server', parent: readTraceContext(headers), baggage: readBaggage(headers) }),
    work: (name) => begin({ name, kind: 'consumer' }),
    caller: (span: Span, { kind, sandboxId }: TracedCaller) => {
      span.set('agentplatform.caller.kind', sandboxId === undefined ? kind : 'sandbox');
      if (sandboxId !== undefined && span instanceof RecordedSpan) span.partOf(sandboxes.of(sandboxId));
    },
    during: (span, run) => wait.during(span, run),
    watch: (database: Database) => wait.watch(database),
    get dropped() {
      return queue.dropped;
    },
    close: () => queue.close(),
  };
}

/** A number from 0 to 1, from the digits of the trace id that are random in every system: every service in a trace reaches one decision. */
function fractionOf(traceId: string): number {
  return Number.parseInt(traceId.slice(-13), 16) / 16 ** 13;
}

function sender({ resource, log, ...target }: OtlpTracerDeps): (spans: readonly RecordedSpan[]) => Promise<Sent> {
  const encode = traceEncoder(resource);
  return async (given) => {
    const { body, lost } = encodable(encode, given);
    if (lost > 0) log.warn({ lost }, 'spans that cannot be encoded are dropped');
    if (!body) return { accepted: true, refused: lost };
    const posted = await postOtlp(target, 'traces', body);
    return posted.accepted ? { accepted: true, refused: lost + refusedIn(posted.answer) } : posted;
  };
}

/** The body of a request, and how many spans are not in it, for they can never be encoded; none when that is all of them. */
function encodable(
  encode: (spans: readonly RecordedSpan[]) => Uint8Array,
  spans: readonly RecordedSpan[],
): { body: Uint8Array | undefined; lost: number } {
  const tried = (some: readonly RecordedSpan[]): Uint8Array | undefined => {
    try {
      return encode(some);
    } catch {
      return undefined;
    }
  };
  const all = tried(spans);
  if (all) return { body: all, lost: 0 };
  const sound = spans.filter((span) => tried([span]));
  return { body: sound.length > 0 ? tried(sound) : undefined, lost: spans.length - sound.length };
}
