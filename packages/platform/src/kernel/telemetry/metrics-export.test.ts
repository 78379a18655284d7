import { pino } from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import { FakeClock } from '../fake-clock.ts';
import { createOutbound, type Outbound } from '../outbound/index.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { exportMetrics, type MetricsExportDeps } from './metrics-export.ts';
import { OtlpReceiver } from './testing/otlp-receiver.ts';

const SECOND = 1000;
let receiver: OtlpReceiver;
let outbound: Outbound;
let clock: FakeClock;
let metrics: Metrics;
let said: string[];

beforeEach(async () => {
  receiver = await OtlpReceiver.start();
  outbound = createOutbound({ anywhere: true, clock: systemClock });
  clock = new FakeClock();
  metrics = createMetrics({ process: false });
  said = [];
});
afterEach(async () => {
  await outbound.close();
  await receiver.close();
});

const start = (over: Partial<MetricsExportDeps> = {}) =>
  exportMetrics({
    endpoint: receiver.url,
    headers: { 'api-key': 'known' },
    outbound,
    metrics,
    intervalMs: 60 * SECOND,
    resource: { 'service.name': 'agentplatform' },
    clock,
    log: pino({ level: 'info' }, { write: (line) => void said.push(JSON.parse(line).msg) }),
    ...over,
  });
const sent = (requests: number) => expect.poll(() => receiver.requests.length).toBe(requests);

it('sends what the kernel measures to the receiver, which knows it by its headers', async () => {
  const request = metrics.request('InvokeAgentRuntime');
  request.began();
  request.ended(200, 0.002);
  request.began();
  request.ended(200, 1000);
  metrics.sandboxStart('oci', 'ready').observe(0.17);
  metrics.watch({ name: 'sessions', help: 'By state.', read: () => ({ active: 2, starting: 1 }), label: 'state' });
  const stop = start();
  await clock.advance(60 * SECOND);
  await sent(1);
  expect(receiver.requests).toMatchObject([{ path: '/v1/metrics', headers: { 'api-key': 'known' } }]);
  const [first] = receiver.metrics;
  const durations = first?.get('agentplatform_request_duration_seconds');
  expect(durations).toMatchObject({ kind: 'histogram', unit: 's', resource: { 'service.name': 'agentplatform' } });
  const [point] = durations?.points ?? [];
  expect(point).toMatchObject({ attributes: { operation: 'InvokeAgentRuntime', status: '200' }, sum: 1000.002 });
  expect(point?.bounds).toHaveLength((point?.counts.length ?? 0) - 1);
  // Each by its own bucket: the one of 0.0025 s, and the one without a bound.
  expect(point?.counts[point.bounds.indexOf(0.0025)]).toBe(1);
  expect(point?.counts.at(-1)).toBe(1);
  expect(point?.counts.reduce((sum, count) => sum + count, 0)).toBe(2);
  expect(first?.get('agentplatform_sessions')).toMatchObject({
    kind: 'gauge',
    points: [
      { attributes: { state: 'active' }, value: 2 },
      { attributes: { state: 'starting' }, value: 1 },
    ],
  });
  expect(first?.get('agentplatform_sandbox_start_seconds')?.points).toMatchObject([{ sum: 0.17 }]);
  await stop();
});

it('sends counters of the process as sums', async () => {
  metrics = createMetrics();
  await start()();
  expect(receiver.metrics[0]?.get('process_cpu_seconds_total')).toMatchObject({ kind: 'sum', unit: 's' });
});

it('sends sums since the start, so that what a receiver has missed is in the next, and says once that one is missing', async () => {
  const stop = start();
  const request = metrics.request('GetMemory');
  const count = (at: number) =>
    receiver.metrics[at]?.get('agentplatform_request_duration_seconds')?.points[0]?.counts.reduce((a, b) => a + b, 0);
  receiver.status = 503;
  for (const requests of [1, 2]) {
    request.began();
    request.ended(200, 0.1);
    await clock.advance(60 * SECOND);
    await sent(requests);
    await expect.poll(() => said.length).toBe(1);
  }
  receiver.status = 200;
  await clock.advance(60 * SECOND);
  await sent(3);
  await expect.poll(() => said).toEqual([expect.stringContaining('not taken'), 'metrics are accepted again']);
  expect(count(0)).toBe(2);
  request.began();
  request.ended(200, 0.1);
  // The last sending is at the end.
  await stop();
  expect(count(1)).toBe(3);
  await clock.advance(600 * SECOND);
  expect(receiver.requests).toHaveLength(4);
});
