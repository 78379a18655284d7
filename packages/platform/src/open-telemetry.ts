import type { Config } from './config.ts';
import { identifiers } from './identifiers.ts';
import { loadMetricsExport, loadOtlpTracer, NO_TRACER, type Tracer } from './kernel/telemetry/index.ts';
import type { Ground } from './open-ground.ts';

/** What this server's spans and metrics are of, in OpenTelemetry's names. */
export const telemetryResource = ({ region }: Pick<Config, 'region'>): Record<string, string> => ({
  'service.name': 'agentplatform',
  'service.instance.id': identifiers.request(),
  'cloud.region': region,
});

type Parts = Pick<Ground, 'config' | 'resource' | 'ownOutbound' | 'clock' | 'log'>;

/** The tracer of the configuration. */
export async function openTracer(parts: Parts): Promise<Tracer> {
  const target = targetOf(parts);
  if (!target) return NO_TRACER;
  const createOtlpTracer = await loadOtlpTracer();
  return createOtlpTracer({ ...parts, ...target, sampleRatio: parts.config.telemetry.sampleRatio });
}

/** Has metrics sent from now on where the configuration names a receiver of them; returns what ends it. */
export async function openMetricsExport(parts: Parts & Pick<Ground, 'metrics'>): Promise<() => Promise<void>> {
  const target = targetOf(parts);
  const { metricsSeconds } = parts.config.telemetry;
  if (!target || metricsSeconds === 0) return async () => undefined;
  const exportMetrics = await loadMetricsExport();
  return exportMetrics({ ...parts, ...target, intervalMs: metricsSeconds * 1000 });
}

function targetOf({ config: { telemetry }, ownOutbound }: Parts) {
  const { otlpEndpoint: endpoint, otlpHeaders: headers } = telemetry;
  return endpoint === undefined ? undefined : { endpoint, headers, outbound: ownOutbound.apart() };
}
