import type { exportMetrics } from './metrics-export.ts';
import type { createOtlpTracer } from './otlp-tracer.ts';

/** What makes a tracer that sends spans by OTLP; its library takes memory, so it is loaded only where there is a receiver. */
export async function loadOtlpTracer(): Promise<typeof createOtlpTracer> {
  return (await import('./otlp-tracer.ts')).createOtlpTracer;
}

/** The same for what sends metrics. */
export async function loadMetricsExport(): Promise<typeof exportMetrics> {
  return (await import('./metrics-export.ts')).exportMetrics;
}
