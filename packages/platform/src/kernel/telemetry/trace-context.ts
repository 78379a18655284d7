import type { IncomingHttpHeaders } from 'node:http';

/** A place in a trace, and what travels with it: W3C Trace Context and Baggage. */
export interface TraceContext {
  /** 32 lower-case hexadecimal digits, not all 0. */
  traceId: string;
  /** 16 of them; absent where only the trace is known. */
  spanId?: string | undefined;
  sampled: boolean;
  /** What other tracing systems say of it, for them to read (`tracestate`). */
  state?: string | undefined;
  /** What the caller says to whoever is called in the end; it decides nothing here, and is in no span. */
  baggage?: string | undefined;
}

/** The headers that carry one, lower-case. */
export const TRACE_HEADERS = ['traceparent', 'tracestate', 'baggage', 'x-amzn-trace-id'] as const;
const NAMES: ReadonlySet<string> = new Set(TRACE_HEADERS);

/** Whether a header of this lower-case name says what a request is a part of. */
export function isTraceHeader(name: string): boolean {
  return NAMES.has(name);
}

/** The longest that each of them may be, in characters (model: InvokeAgentRuntime). */
const LONGEST = { traceparent: 128, tracestate: 512, baggage: 8192, 'x-amzn-trace-id': 128 };

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const XRAY_ROOT = /^1-([0-9a-f]{8})-([0-9a-f]{24})$/;
const XRAY_PARENT = /^[0-9a-f]{16}$/;
const NOTHING = /^0+$/;

const STATE_MEMBERS = 32;
const STATE_MEMBER = /^[a-z0-9][\w*/@-]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;
const BAGGAGE_MEMBERS = 64;
const PRINTABLE = /^[\t\x20-\x7e]*$/;
const BAGGAGE_KEY = /^[!#$%&'*+.^`|~\w-]+$/;
/** Percent-encoded. */
const BAGGAGE_VALUE = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*$/;

/**
 * What a caller says of the trace that its request is a part of: `traceparent`, without which `X-Amzn-Trace-Id` counts. Anybody may send
 * anything: what is not well formed or too long is passed over, and nothing of it says whether a trace is recorded.
 */
export function readTraceContext(headers: IncomingHttpHeaders): TraceContext | undefined {
  const parent = readTraceparent(textOf(headers, 'traceparent'));
  if (!parent) return readXray(textOf(headers, 'x-amzn-trace-id'));
  const state = stateOf(textOf(headers, 'tracestate'));
  return state === undefined ? parent : { ...parent, state };
}

/** The well-formed members of a caller's baggage; undefined when it has no such member. */
export function readBaggage(headers: IncomingHttpHeaders): string | undefined {
  const text = textOf(headers, 'baggage');
  if (text === undefined) return undefined;
  const members = text.split(',').map((member) => member.trim());
  const kept = members.filter(isBaggageMember).slice(0, BAGGAGE_MEMBERS);
  return kept.length === 0 ? undefined : kept.join(',');
}

/** The headers that hand it on, names and values in turn, in both spellings: agents read the one that their library knows. */
export function traceHeaders({ traceId, spanId, sampled, state, baggage }: TraceContext): string[] {
  const flag = sampled ? '1' : '0';
  const xray = `Root=1-${traceId.slice(0, 8)}-${traceId.slice(8)};Parent=${spanId};Sampled=${flag}`;
  const headers = ['traceparent', `00-${traceId}-${spanId}-0${flag}`, 'x-amzn-trace-id', xray];
  if (state !== undefined) headers.push('tracestate', state);
  if (baggage !== undefined) headers.push('baggage', baggage);
  return headers;
}

function readTraceparent(text: string | undefined): TraceContext | undefined {
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(text ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  // Later versions may say more behind it; the first may not.
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (NOTHING.test(traceId) || NOTHING.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

function readXray(text: string | undefined): TraceContext | undefined {
  if (text === undefined) return undefined;
  const fields = new Map(text.split(';').map((field): [string, string] => pair(field.trim())));
  const [, time, rest] = XRAY_ROOT.exec(fields.get('Root') ?? '') ?? [];
  const traceId = `${time}${rest}`;
  if (time === undefined || NOTHING.test(traceId)) return undefined;
  const parent = fields.get('Parent') ?? '';
  const spanId = XRAY_PARENT.test(parent) && !NOTHING.test(parent) ? parent : undefined;
  return { traceId, spanId, sampled: fields.get('Sampled') === '1' };
}

/** One member that is wrong makes the whole worthless (W3C Trace Context, 3.3.1). */
function stateOf(text: string | undefined): string | undefined {
  const members = (text ?? '').split(',').flatMap((member) => member.trim() || []);
  const valid = members.length > 0 && members.length <= STATE_MEMBERS && members.every((one) => STATE_MEMBER.test(one));
  return valid ? members.join(',') : undefined;
}

/** A key with its value, and properties, which may have one (W3C Baggage, 3.3.1). Part by part: one pattern for the whole can be made to go back and forth. */
function isBaggageMember(member: string): boolean {
  const [first = '', ...properties] = member.split(';');
  if (!PRINTABLE.test(member)) return false;
  return isBaggagePair(first) && properties.every((one) => isBaggagePair(one) || BAGGAGE_KEY.test(one.trim()));
}

function isBaggagePair(text: string): boolean {
  const [key, value] = pair(text);
  return text.includes('=') && BAGGAGE_KEY.test(key.trim()) && BAGGAGE_VALUE.test(value.trim());
}

function textOf(headers: IncomingHttpHeaders, name: keyof typeof LONGEST): string | undefined {
  const value = headers[name];
  return typeof value === 'string' && value.length <= LONGEST[name] ? value : undefined;
}

function pair(field: string): [string, string] {
  const at = field.indexOf('=');
  return at < 0 ? [field, ''] : [field.slice(0, at), field.slice(at + 1)];
}
