import { list, number, object, type Shape, text, wire } from '../../kernel/stored-shape.ts';
import type { Attributes, AttributeValue, OtlpSpan } from './otlp/index.ts';
import { CONTENT_NAMES, meaningOf, NAMES_VERSION } from './span-names.ts';

/** A span as it is stored. */
export interface SpanRow {
  /** On which it came (UTC). */
  day: string;
  accountId: string;
  traceId: string;
  spanId: string;
  parentSpanId: string;
  /** ARN of the resource whose agent sent it; empty where that is not known. */
  agent: string;
  sessionId: string;
  userId: string;
  service: string;
  scope: string;
  name: string;
  kind: number;
  operation: string;
  agentName: string;
  model: string;
  tool: string;
  inputTokens: number;
  outputTokens: number;
  /** Microseconds since the epoch, and how many. */
  startedUs: number;
  durationUs: number;
  status: number;
  statusMessage: string;
  namesVersion: number;
  /** JSON of `SpanDetail`. */
  detail: string;
  /** Milliseconds since the epoch. */
  receivedAt: number;
}

/** What of a span is only shown. */
export interface SpanDetail {
  attributes: Attributes;
  events: { name: string; atUs: number; attributes: Attributes }[];
  resource: Attributes;
  input: string;
  output: string;
  droppedAttributes: number;
}

/** The column `detail`, as `rowOf` writes it. */
export const storedDetail: Shape<SpanDetail> = object<SpanDetail>({
  ...{ attributes: wire<Attributes>(), resource: wire<Attributes>() },
  events: list(object<SpanDetail['events'][number]>({ name: text, atUs: number, attributes: wire<Attributes>() })),
  ...{ input: text, output: text, droppedAttributes: number },
});

export const storedRows: Shape<{ rows: SpanRow[] }> = object({
  rows: list(
    object<SpanRow>({
      ...{ day: text, accountId: text, traceId: text, spanId: text, parentSpanId: text, agent: text, sessionId: text },
      ...{ userId: text, service: text, scope: text, name: text, kind: number, operation: text, agentName: text },
      ...{ model: text, tool: text, inputTokens: number, outputTokens: number, startedUs: number, durationUs: number },
      ...{ status: number, statusMessage: text, namesVersion: number, detail: text, receivedAt: number },
    }),
  ),
});

/** Whether what agents say and are told is kept: as it is, with secrets blanked, or not at all. */
export type Content = 'on' | 'redacted' | 'off';

/** Whose span it is, as the platform knows it. */
export interface Sender {
  accountId: string;
  agent: string;
  /** Of the sandbox that sent it; empty where it came from elsewhere. */
  sessionId: string;
}

export interface Receipt {
  sender: Sender;
  at: number;
  content: Content;
  /** Blanks secrets in a text. */
  redact(text: string): string;
}

const LONGEST_NAME = 512;
const LONGEST_VALUE = 16_384;
/** Of attributes, events and the rest in JSON. */
const LONGEST_DETAIL = 262_144;
/** Starts before this and after the other are no moments of agents: they count as now. */
const EARLIEST_US = 946_684_800_000_000;
const LATEST_US = 4_102_444_800_000_000;
const LONGEST_US = 31 * 86_400_000_000;

/** Why a span cannot be stored; undefined for one that can. */
export function refusalOf({ traceId, spanId }: OtlpSpan): string | undefined {
  if (!/^[0-9a-f]{32}$/.test(traceId) || /^0+$/.test(traceId)) return 'a traceId is not 16 bytes';
  if (!/^[0-9a-f]{16}$/.test(spanId) || /^0+$/.test(spanId)) return 'a spanId is not 8 bytes';
  return undefined;
}

/** A span as it is stored: every text bounded, secrets blanked or content left out as its runtime wants it. */
export function rowOf(span: OtlpSpan, { sender, at, content, redact }: Receipt): SpanRow {
  const show = (attributes: Attributes): Attributes => shown(attributes, { content, redact });
  const attributes = show(span.attributes);
  const meaning = meaningOf(attributes);
  const startedUs = momentUs(span.startedAt, at);
  const ended = span.endedAt >= span.startedAt ? span.endedAt - span.startedAt : 0n;
  const of = (name: string): string => name.slice(0, LONGEST_NAME).replaceAll('\0', '\ufffd').toWellFormed();
  return {
    day: new Date(at).toISOString().slice(0, 10),
    ...{ accountId: sender.accountId, agent: sender.agent },
    ...{ traceId: span.traceId, spanId: span.spanId },
    parentSpanId: /^[0-9a-f]{16}$/.test(span.parentSpanId) && !/^0+$/.test(span.parentSpanId) ? span.parentSpanId : '',
    // A sandbox knows its session better than what runs in it.
    sessionId: sender.sessionId || of(meaning.sessionId || sessionIn(span.resource)) || span.traceId,
    userId: of(meaning.userId),
    service: of(textIn(span.resource, 'service.name')),
    ...{ scope: of(span.scope), name: of(span.name), kind: Math.min(5, Math.max(0, span.kind)) || 0 },
    ...{ operation: of(meaning.operation), agentName: of(meaning.agentName), model: of(meaning.model) },
    ...{ tool: of(meaning.tool), inputTokens: meaning.inputTokens, outputTokens: meaning.outputTokens },
    startedUs,
    durationUs: Math.min(LONGEST_US, Number(ended / 1000n)),
    status: [0, 1, 2].includes(span.status) ? span.status : 0,
    statusMessage: of(redact(span.statusMessage)),
    namesVersion: NAMES_VERSION,
    detail: detailOf(span, { attributes, meaning, show }),
    receivedAt: Math.round(at),
  };
}

function detailOf(
  span: OtlpSpan,
  {
    attributes,
    meaning,
    show,
  }: { attributes: Attributes; meaning: { input: string; output: string }; show(of: Attributes): Attributes },
): string {
  const events = span.events.map((event) => ({
    ...{ name: event.name.slice(0, LONGEST_NAME), atUs: Number(event.at / 1000n), attributes: show(event.attributes) },
  }));
  const { input, output } = meaning;
  const detail: SpanDetail = {
    ...{ attributes, events, resource: show(span.resource), input, output, droppedAttributes: span.droppedAttributes },
  };
  const json = JSON.stringify(detail);
  if (json.length <= LONGEST_DETAIL) return json;
  const dropped = Object.keys(attributes).length + span.droppedAttributes;
  const rest = {
    attributes: {},
    events: [],
    resource: {},
    input: input.slice(0, LONGEST_VALUE),
    output: output.slice(0, LONGEST_VALUE),
  };
  return JSON.stringify({ ...rest, droppedAttributes: dropped });
}

function shown(attributes: Attributes, { content, redact }: Pick<Receipt, 'content' | 'redact'>): Attributes {
  const entries = Object.entries(attributes).map(([name, value]): [string, AttributeValue] => [
    name.slice(0, LONGEST_NAME),
    content === 'off' && CONTENT_NAMES.test(name) ? null : bounded(value, content === 'on' ? (one) => one : redact),
  ]);
  return Object.fromEntries(entries.filter(([, value]) => value !== null));
}

function bounded(value: AttributeValue, redact: (text: string) => string): AttributeValue {
  if (typeof value === 'string') return redact(value.slice(0, LONGEST_VALUE)).toWellFormed();
  if (Array.isArray(value)) return value.map((item) => bounded(item, redact));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, bounded(item, redact)]));
}

function momentUs(nano: bigint, now: number): number {
  const micros = Number(nano / 1000n);
  return micros >= EARLIEST_US && micros <= LATEST_US ? micros : Math.round(now * 1000);
}

const textIn = (attributes: Attributes, name: string): string => {
  const value = attributes[name];
  return typeof value === 'string' ? value : '';
};

const sessionIn = (resource: Attributes): string => textIn(resource, 'session.id');
