import { expect, it } from 'vitest';
import { readBaggage, readTraceContext, traceHeaders } from './trace-context.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

it('takes up what a caller says of its trace, and passes over what is not well formed', () => {
  expect(readTraceContext({ traceparent: `00-${TRACE}-${SPAN}-01` })).toEqual({
    traceId: TRACE,
    spanId: SPAN,
    sampled: true,
  });
  // A later version may say more.
  expect(readTraceContext({ traceparent: `cc-${TRACE}-${SPAN}-00-more` })).toMatchObject({ sampled: false });
  for (const traceparent of [
    '',
    `00-${TRACE}-${SPAN}-01-more`,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
    `cc-${TRACE}-${SPAN}-00-${'x'.repeat(128)}`,
  ])
    expect(readTraceContext({ traceparent }), traceparent).toBeUndefined();
});

it('takes up the spelling of X-Ray where there is no other', () => {
  const root = `1-${TRACE.slice(0, 8)}-${TRACE.slice(8)}`;
  const xray = `Self=1-2-3;Root=${root};Parent=${SPAN};Sampled=1`;
  expect(readTraceContext({ 'x-amzn-trace-id': xray })).toEqual({ traceId: TRACE, spanId: SPAN, sampled: true });
  expect(readTraceContext({ 'x-amzn-trace-id': `Root=${root}` })).toMatchObject({ traceId: TRACE, spanId: undefined });
  expect(readTraceContext({ 'x-amzn-trace-id': `Root=1-5;Parent=${SPAN}` })).toBeUndefined();
  const other = `00-${'1'.repeat(32)}-${SPAN}-00`;
  expect(readTraceContext({ 'x-amzn-trace-id': xray, traceparent: other })?.traceId).toBe('1'.repeat(32));
});

it('keeps the state of other systems whole or not at all', () => {
  const traceparent = `00-${TRACE}-${SPAN}-01`;
  const state = (tracestate: string) => readTraceContext({ traceparent, tracestate })?.state;
  expect(state('rojo=00f067aa0ba902b7, congo=t61rcWkgMzE')).toBe('rojo=00f067aa0ba902b7,congo=t61rcWkgMzE');
  for (const wrong of [
    'rojo',
    'Rojo=1',
    'a=é',
    'a=1,b',
    Array.from({ length: 33 }, (_, i) => `k${i}=1`).join(','),
    `a=${'x'.repeat(512)}`,
  ])
    expect(state(wrong), wrong).toBeUndefined();
});

it('keeps the well-formed members of baggage, and no more than 64 of them', () => {
  const of = (baggage: string) => readBaggage({ baggage });
  expect(of('user=alice%20b;p=1, evil\u0000=1,tenant=7,no value,quote="x"')).toBe('user=alice%20b;p=1,tenant=7');
  expect(of('nothing here')).toBeUndefined();
  expect(of(`a=${'x'.repeat(8192)}`)).toBeUndefined();
  expect(of(Array.from({ length: 80 }, (_, i) => `k${i}=1`).join(','))?.split(',')).toHaveLength(64);
  expect(of('a = 1 ; b = 2 ;c,d=\u00a01,e=1\u00a0')).toBe('a = 1 ; b = 2 ;c,e=1');
  // Patterns that go back and forth would not come to an end with one of these.
  expect(of(`${'a'.repeat(4000)}=${';'.repeat(4000)}\u0000`)).toBeUndefined();
  expect(of(`a=b${';k= '.repeat(2000)}"`)).toBeUndefined();
  expect(of(`a=b${';k \t'.repeat(2000)}"`)).toBeUndefined();
});

it('hands it on in both spellings, which say the same', () => {
  const headers = traceHeaders({ traceId: TRACE, spanId: SPAN, sampled: true, state: 'a=1', baggage: 'b=2' });
  const said = Object.fromEntries(headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1]]] : [])));
  expect(said).toEqual({
    traceparent: `00-${TRACE}-${SPAN}-01`,
    'x-amzn-trace-id': `Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=${SPAN};Sampled=1`,
    tracestate: 'a=1',
    baggage: 'b=2',
  });
  expect(readTraceContext({ 'x-amzn-trace-id': said['x-amzn-trace-id'] })).toEqual(
    readTraceContext({ traceparent: said.traceparent }),
  );
});
