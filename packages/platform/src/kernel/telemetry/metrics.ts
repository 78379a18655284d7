import { collectDefaultMetrics, Histogram, Gauge as PrometheusGauge, Registry } from 'prom-client';

/** What one operation counts; made once at start, so that a request costs no look-up of labels. */
export interface RequestMetrics {
  /** A request began. */
  began(): void;
  /** It ended with that HTTP status after so many seconds. */
  ended(status: number, seconds: number): void;
}

/** Adds one duration, in seconds, to a histogram. */
export interface Timer {
  observe(seconds: number): void;
}

/** A value that is read when somebody asks for the metrics: a number, or one for each value of `label`. Its name has no prefix. */
export type Gauge = { name: string; help: string } & (
  | { label?: undefined; read(): number }
  | { label: string; read(): Record<string, number> }
);

/** One metric as it is at a moment, every value with its labels. */
export type Measurement = { name: string; help: string } & (
  | { kind: 'gauge' | 'counter'; values: { labels: Labels; value: number }[] }
  | { kind: 'histogram'; values: Distribution[] }
);

type Labels = Record<string, string>;

interface Distribution {
  labels: Labels;
  /** Upper bounds of all buckets but the last, which has none. */
  bounds: number[];
  /** The count of each bucket, not cumulative. */
  counts: number[];
  count: number;
  sum: number;
}

/** The platform's own measurements, in the form that Prometheus reads. */
export interface Metrics {
  /** The same object for the same name, always. */
  request(operation: string): RequestMetrics;
  /** How long sandboxes of a provider take until they answer, or until their start has failed. */
  sandboxStart(provider: string, outcome: 'ready' | 'failed'): Timer;
  /** Shows a value: sessions by state, journal lag, queue lengths. Registering a name again replaces its reader. */
  watch(gauge: Gauge): void;
  /** The same for one that is its service's own. Throws where another has the name already. */
  declare(gauge: Gauge, service: string): void;
  /** Everything as it is now. */
  read(): Promise<Measurement[]>;
  /** Everything, for `/metrics`. */
  render(): Promise<{ contentType: string; body: string }>;
}

const prefix = 'agentplatform_';
// From the hot path's part of a millisecond to a synchronous invocation's fifteen minutes.
const requestBuckets = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900,
];
const startBuckets = [0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 10, 30, 60];

/** Measurements in a registry of their own; `process` adds those of Node itself (memory, event loop, garbage collection). */
export function createMetrics({ process: withProcess = true }: { process?: boolean } = {}): Metrics {
  const registry = new Registry();
  const registers = [registry];
  if (withProcess) collectDefaultMetrics({ register: registry });

  const durations = new Histogram({
    name: `${prefix}request_duration_seconds`,
    help: 'Time from the first byte of a request to the last byte of its answer.',
    labelNames: ['operation', 'status'],
    buckets: requestBuckets,
    registers,
  });
  // A number each, which the gauge reads when it is asked for: to count in it costs a request ten times as much.
  const inFlight = new Map<string, number>();
  new PrometheusGauge({
    name: `${prefix}requests_in_flight`,
    help: 'Requests being served.',
    labelNames: ['operation'],
    registers,
    collect() {
      for (const [operation, count] of inFlight) this.set({ operation }, count);
    },
  });
  const starts = new Histogram({
    name: `${prefix}sandbox_start_seconds`,
    help: 'Time until a new sandbox answers on its port, or fails to.',
    labelNames: ['provider', 'outcome'],
    buckets: startBuckets,
    registers,
  });
  const requests = new Map<string, RequestMetrics>();
  const readers = new Map<string, { read: () => number | Record<string, number>; label: string | undefined }>();

  const requestMetrics = (operation: string): RequestMetrics => {
    const count = (by: number): void => void inFlight.set(operation, (inFlight.get(operation) ?? 0) + by);
    const byStatus = new Map<number, Timer>();
    return {
      began: () => count(1),
      ended(status, seconds) {
        count(-1);
        let timer = byStatus.get(status);
        if (timer === undefined) {
          timer = durations.labels(operation, String(status));
          byStatus.set(status, timer);
        }
        timer.observe(seconds);
      },
    };
  };

  const watch = ({ name, help, read, label }: Gauge): void => {
    const full = prefix + name;
    const isNew = !readers.has(full);
    readers.set(full, { read, label });
    if (!isNew) return;
    new PrometheusGauge({
      name: full,
      help,
      labelNames: label === undefined ? [] : [label],
      registers,
      collect() {
        const reader = readers.get(full);
        const value = reader?.read() ?? 0;
        this.reset();
        if (typeof value === 'number') this.set(value);
        else
          for (const [labelValue, one] of Object.entries(value))
            this.set({ [reader?.label ?? 'kind']: labelValue }, one);
      },
    });
  };

  return {
    request(operation) {
      const known = requests.get(operation) ?? requestMetrics(operation);
      requests.set(operation, known);
      return known;
    },
    sandboxStart: (provider, outcome) => starts.labels(provider, outcome),
    watch,
    declare(gauge, service) {
      const full = prefix + gauge.name;
      if (registry.getSingleMetric(full)) throw new Error(`the metric ${full} of ${service} is another's already`);
      watch(gauge);
    },
    read: async () => (await registry.getMetricsAsJSON()).flatMap(measurementOf),
    render: async () => ({ contentType: registry.contentType, body: await registry.metrics() }),
  };
}

type Kept = Awaited<ReturnType<Registry['getMetricsAsJSON']>>[number];

function measurementOf({ name, help, type, values }: Kept): Measurement[] {
  // What the library says of a metric's type has the form of its enum in one place and of its name in another.
  const kind = String(type);
  if (kind === 'histogram') return [{ name, help, kind, values: distributionsOf(values) }];
  if (kind !== 'gauge' && kind !== 'counter') return [];
  return [{ name, help, kind, values: values.map(({ value, labels }) => ({ value, labels: textsOf(labels) })) }];
}

/** The library lists what is at most as large as each bound (`le`), then the sum and the count of the same labels. */
function distributionsOf(values: Kept['values']): Distribution[] {
  const all = new Map<string, Distribution>();
  for (const one of values) {
    const { le, ...labels } = textsOf(one.labels);
    const key = JSON.stringify(labels);
    const known = all.get(key) ?? { labels, bounds: [], counts: [], count: 0, sum: 0 };
    all.set(key, known);
    const part = 'metricName' in one ? String(one.metricName) : '';
    if (part.endsWith('_sum')) known.sum = one.value;
    else if (part.endsWith('_count')) known.count = one.value;
    else {
      known.counts.push(one.value - known.counts.reduce((sum, count) => sum + count, 0));
      if (le !== undefined && le !== '+Inf') known.bounds.push(Number(le));
    }
  }
  return [...all.values()];
}

function textsOf(labels: Kept['values'][number]['labels']): Labels {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)]));
}
