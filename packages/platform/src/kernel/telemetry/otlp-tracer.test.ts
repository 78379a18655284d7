import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import { FakeClock } from '../fake-clock.ts';
import { createOutbound, type Outbound } from '../outbound/index.ts';
import { createOtlpTracer, type OtlpTracerDeps } from './otlp-tracer.ts';
import type { TracedSession } from './span.ts';
import { OtlpReceiver } from './testing/otlp-receiver.ts';
import type { Tracer } from './tracer.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const CALLER = { traceparent: `00-${TRACE}-${SPAN}-00` };
let receiver: OtlpReceiver;
let outbound: Outbound;

beforeEach(async () => {
  receiver = await OtlpReceiver.start();
  outbound = createOutbound({ anywhere: true, clock: systemClock });
});
afterEach(async () => {
  await outbound.close();
  await receiver.close();
});

const tracerOf = (over: Partial<OtlpTracerDeps> = {}): Tracer =>
  createOtlpTracer({
    endpoint: receiver.url,
    headers: { 'api-key': 'known' },
    sampleRatio: 1,
    resource: { 'service.name': 'agentplatform' },
    outbound,
    clock: systemClock,
    log: pino({ enabled: false }),
    ...over,
  });
const sandbox = (id = 's-1', resumed = false): TracedSession => ({ row: { sandboxId: id }, resumed });
const fromSandbox = { kind: 'iam', sandboxId: 's-1' };

it('sends spans with their parents, times and attributes to the receiver, which knows it by its headers', async () => {
  const tracer = tracerOf();
  const request = tracer.request('InvokeAgentRuntime', { ...CALLER, tracestate: 'a=1', baggage: 'b=2' });
  request.set('http.response.status_code', 200);
  request.set('absent', undefined);
  const call = request.child('chat x', 'client');
  expect(call.context).toMatchObject({ traceId: TRACE, sampled: true, state: 'a=1', baggage: 'b=2' });
  call.set('gen_ai.response.finish_reasons', ['end']);
  call.fail('throttled');
  call.end();
  request.end();
  request.end();
  await tracer.close();
  expect(receiver.requests).toMatchObject([{ path: '/v1/traces', headers: { 'api-key': 'known' }, spans: 2 }]);
  const [chat, server] = receiver.spans;
  expect(server).toMatchObject({ name: 'InvokeAgentRuntime', kind: 2, traceId: TRACE, parentId: SPAN, status: 0 });
  expect(server?.attributes).toEqual({ 'http.response.status_code': 200 });
  expect(server?.resource).toEqual({ 'service.name': 'agentplatform' });
  expect(chat).toMatchObject({ name: 'chat x', kind: 3, traceId: TRACE, parentId: server?.spanId, status: 2 });
  expect(chat?.attributes).toEqual({ 'error.type': 'throttled', 'gen_ai.response.finish_reasons': ['end'] });
  expect(Number((server?.end ?? 0n) / 1_000_000n)).toBeCloseTo(Date.now(), -5);
  expect((server?.end ?? 0n) >= (chat?.end ?? 1n)).toBe(true);
});

it('decides by the id of the trace alone what is recorded, whatever a caller says', async () => {
  const none = tracerOf({ sampleRatio: 0 });
  const unsampled = none.request('x', { traceparent: CALLER.traceparent.replace(/00$/, '01') });
  // It is handed on all the same, so that agents know of it.
  expect(unsampled.child('y', 'client').context).toMatchObject({ traceId: TRACE, sampled: false });
  unsampled.end();
  await none.close();
  expect(receiver.spans).toEqual([]);
  const half = tracerOf({ sampleRatio: 0.5 });
  const sampled = Array.from({ length: 400 }, () => half.work('job').context?.sampled);
  expect(sampled.filter(Boolean).length).toBeGreaterThan(120);
  expect(sampled.filter(Boolean).length).toBeLessThan(280);
  await half.close();
});

it('joins a call from a sandbox without a trace to what it is asked, only where that is certain', () => {
  const tracer = tracerOf();
  const parentOf = (headers = {}) => {
    const span = tracer.request('InvokeModel', headers);
    tracer.caller(span, fromSandbox);
    return span.context?.traceId;
  };
  const session = sandbox();
  const first = tracer.request('InvokeAgentRuntime', CALLER);
  expect(parentOf()).not.toBe(TRACE);
  first.handTo(session);
  expect(parentOf()).toBe(TRACE);
  // What it says itself counts.
  expect(parentOf({ traceparent: `00-${'1'.repeat(32)}-${SPAN}-01` })).toBe('1'.repeat(32));
  const second = tracer.request('InvokeAgentRuntime', {});
  second.handTo(session);
  expect([TRACE, second.context?.traceId]).not.toContain(parentOf());
  second.end();
  expect(parentOf()).not.toBe(TRACE);
  first.end();
  // The next one may find at work what an earlier one has left.
  const third = tracer.request('InvokeAgentRuntime', CALLER);
  third.handTo(session);
  expect(parentOf()).not.toBe(TRACE);
  // Nor is it known what an earlier life of the server has asked.
  const resumed = tracer.request('InvokeAgentRuntime', CALLER);
  resumed.handTo(sandbox('s-1', true));
  expect(parentOf()).not.toBe(TRACE);
  const alone = tracer.request('InvokeAgentRuntime', CALLER);
  alone.handTo(sandbox());
  expect(parentOf()).toBe(TRACE);
  alone.end();
  expect(parentOf()).not.toBe(TRACE);
});

it('tells no secret, not even one that somebody puts in by mistake', async () => {
  const tracer = tracerOf();
  const span = tracer.request('x', {});
  span.set('plain', 'positive-control');
  span.set('header', 'Bearer abcdefghijklmnop');
  span.set('list', ['postgres://me:hunter2hunter2@host/db']);
  span.set('long', 'y'.repeat(5000));
  span.end();
  await tracer.close();
  const sent = Buffer.concat(receiver.bytes).toString('latin1');
  expect(sent).toContain('positive-control');
  expect(sent).not.toContain('abcdefghijklmnop');
  expect(sent).not.toContain('hunter2');
  expect(String(receiver.spans[0]?.attributes.long)).toHaveLength(1024);
});

it('keeps what waits while the receiver is away, bounded and counted, and sends it once that is back', async () => {
  const clock = new FakeClock();
  const { port } = receiver;
  await receiver.close();
  const tracer = tracerOf({ clock, endpoint: `http://127.0.0.1:${port}` });
  for (let i = 0; i < 10_000; i++) tracer.work('job').end();
  expect(tracer.dropped).toBe(10_000 - 4096);
  receiver = await OtlpReceiver.start(port);
  await expect
    .poll(
      async () => {
        await clock.advance(31_000);
        return receiver.spans.length;
      },
      { timeout: 20_000 },
    )
    .toBe(4096);
  expect(tracer.dropped).toBe(10_000 - 4096);
  await tracer.close();
});

it('counts what the receiver refuses, and asks again only where that is of use', async () => {
  const tracer = tracerOf();
  receiver.status = 400;
  tracer.work('a').end();
  await tracer.close();
  expect([receiver.requests.length, tracer.dropped]).toEqual([1, 1]);
  const partial = tracerOf();
  receiver.status = 200;
  receiver.refuses = 1;
  partial.work('b').end();
  partial.work('c').end();
  await partial.close();
  expect(partial.dropped).toBe(1);
});

it('drops and counts a span that cannot be encoded, and sends those beside it', async () => {
  const clock = new FakeClock();
  const tracer = tracerOf({ clock });
  const work = (name: string, attribute: 'sound' | 'odd' = 'sound'): void => {
    const span = tracer.work(name);
    // Of no type that an attribute has, as from a place that the compiler does not see.
    span.set('attribute', attribute === 'odd' ? JSON.parse('{}') : 'sound');
    span.end();
  };
  work('before');
  work('never to be encoded', 'odd');
  work('after');
  await clock.advance(1000);
  await expect.poll(() => receiver.spans.map(({ name }) => name)).toEqual(['before', 'after']);
  await expect.poll(() => tracer.dropped).toBe(1);
  // Nothing is asked for again, and what comes then goes out.
  work('alone', 'odd');
  await clock.advance(1000);
  await expect.poll(() => tracer.dropped).toBe(2);
  work('next');
  await clock.advance(1000);
  await expect.poll(() => receiver.spans.at(-1)?.name).toBe('next');
  expect(receiver.requests.length).toBe(2);
  await tracer.close();
  expect(tracer.dropped).toBe(2);
});

it('stops within its time when the receiver never answers', async () => {
  const silent = createServer(() => undefined);
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const tracer = tracerOf({ endpoint: `http://127.0.0.1:${(silent.address() as AddressInfo).port}` });
  tracer.work('a').end();
  await tracer.close();
  expect(tracer.dropped).toBe(1);
  silent.closeAllConnections();
  silent.close();
});
