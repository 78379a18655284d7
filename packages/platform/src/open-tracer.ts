import type { Logger } from 'pino';
import type { Config } from './config.ts';
import type { Clock } from './kernel/clock.ts';
import type { Outbound } from './kernel/outbound/index.ts';
import { loadOtlpTracer, NO_TRACER, type Tracer } from './kernel/telemetry/index.ts';

/** The tracer of the configuration. */
export async function openTracer(
  { telemetry, region }: Config,
  { outbound, instance, clock, log }: { outbound: Outbound; instance: string; clock: Clock; log: Logger },
): Promise<Tracer> {
  const { otlpEndpoint: endpoint, otlpHeaders: headers, sampleRatio } = telemetry;
  if (endpoint === undefined) return NO_TRACER;
  const createOtlpTracer = await loadOtlpTracer();
  const resource = { 'service.name': 'agentplatform', 'service.instance.id': instance, 'cloud.region': region };
  return createOtlpTracer({ endpoint, headers, sampleRatio, resource, outbound: outbound.apart(), clock, log });
}
