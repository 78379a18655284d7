import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { every } from '../every.ts';
import type { Metrics } from './metrics.ts';
import { metricEncoder } from './otlp-metrics.ts';
import { type OtlpTarget, type Posted, postOtlp } from './otlp-post.ts';

export interface MetricsExportDeps extends OtlpTarget {
  metrics: Pick<Metrics, 'read'>;
  /** Between two sendings. */
  intervalMs: number;
  /** What is measured, in OpenTelemetry's names. */
  resource: Record<string, string>;
  clock: Clock;
  log: Logger;
}

/** For the last sending, when the server stops. */
const GOODBYE_MS = 2000;

/**
 * Sends the metrics by OTLP over HTTP now and then, sums since the start of the server. What a receiver does not take is not kept: the next sending
 * has it. Returns what ends it, with a last sending.
 */
export function exportMetrics(deps: MetricsExportDeps): () => Promise<void> {
  const { metrics, intervalMs, clock, log, resource } = deps;
  const encode = metricEncoder(resource);
  const from = clock.now();
  let failing = false;
  const note = (posted: Posted): void => {
    // Said once when it begins, and once when it is over.
    if (posted.accepted && failing) log.info('metrics are accepted again');
    if (!posted.accepted && !failing)
      log.warn({ why: posted.why }, 'metrics are not taken by telemetry.otlpEndpoint; it is tried again');
    failing = !posted.accepted;
  };
  const send = async (): Promise<void> =>
    note(await postOtlp(deps, 'metrics', encode(await metrics.read(), { from, to: clock.now() })));
  const stop = every(clock, intervalMs, 'send metrics', send, log);
  return async () => {
    const late = Promise.withResolvers<void>();
    const cancel = clock.after(GOODBYE_MS, late.resolve);
    const last = stop().then(() => (failing ? undefined : send()));
    await Promise.race([
      last.catch((err: unknown) => log.warn({ err }, 'the last metrics were not sent')),
      late.promise,
    ]);
    cancel();
  };
}
