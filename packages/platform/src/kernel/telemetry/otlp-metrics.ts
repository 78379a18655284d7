import { ValueType } from '@opentelemetry/api';
import { ProtobufMetricsSerializer } from '@opentelemetry/otlp-transformer';
import { AggregationTemporality, DataPointType, type MetricData } from '@opentelemetry/sdk-metrics';
import type { Measurement } from './metrics.ts';
import { highResolution, resourceOf, SCOPE } from './otlp.ts';

/** From when to when something was measured, in milliseconds since the epoch. */
export interface Interval {
  from: number;
  to: number;
}

/** Makes the body of an OTLP request out of measurements of that resource. Labels and names are those at `/metrics`. */
export function metricEncoder(
  attributes: Record<string, string>,
): (measured: readonly Measurement[], time: Interval) => Uint8Array {
  const resource = resourceOf(attributes);
  return (measured, time) => {
    const metrics = measured.map((one) => dataOf(one, time));
    const body = ProtobufMetricsSerializer.serializeRequest({ resource, scopeMetrics: [{ scope: SCOPE, metrics }] });
    if (!body) throw new Error('the metrics could not be encoded');
    return body;
  };
}

function dataOf(measured: Measurement, { from, to }: Interval): MetricData {
  const { name, help: description } = measured;
  const time = { startTime: highResolution(from), endTime: highResolution(to) };
  const common = {
    descriptor: { name, description, unit: unitOf(name), valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  if (measured.kind === 'histogram') {
    const dataPoints = measured.values.map(({ labels, bounds, counts, count, sum }) => ({
      ...time,
      attributes: labels,
      value: { buckets: { boundaries: bounds, counts }, count, sum },
    }));
    return { ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints };
  }
  const dataPoints = measured.values.map(({ labels, value }) => ({ ...time, attributes: labels, value }));
  return measured.kind === 'counter'
    ? { ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    : { ...common, dataPointType: DataPointType.GAUGE, dataPoints };
}

/** As UCUM calls it, by the last word of the name. */
function unitOf(name: string): string {
  if (/_seconds(?:_total)?$/.test(name)) return 's';
  return /_bytes$/.test(name) ? 'By' : '';
}
