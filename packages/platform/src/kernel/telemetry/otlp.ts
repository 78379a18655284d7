import { type SpanContext, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import type { RecordedSpan } from './recorded-span.ts';
import { redactText } from './redact.ts';
import type { AttributeValue } from './span.ts';

/** Of OpenTelemetry's SDK: what its encoder takes. */
type ReadableSpan = Parameters<typeof ProtobufTraceSerializer.serializeRequest>[0][number];
type Resource = ReadableSpan['resource'];

const KINDS = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  consumer: SpanKind.CONSUMER,
  internal: SpanKind.INTERNAL,
};
export const SCOPE = { name: 'agentplatform' };

/** Makes the body of an OTLP request out of spans of that resource. */
export function traceEncoder(attributes: Record<string, string>): (spans: readonly RecordedSpan[]) => Uint8Array {
  const resource = resourceOf(attributes);
  return (spans) => {
    const body = ProtobufTraceSerializer.serializeRequest(spans.map((span) => readable(span, resource)));
    if (!body) throw new Error('the spans could not be encoded');
    return body;
  };
}

/** As the encoders take it. */
export function resourceOf(attributes: Record<string, string>): Resource {
  const resource: Resource = {
    attributes,
    asyncAttributesPending: false,
    getRawAttributes: () => Object.entries(attributes),
    merge: () => resource,
  };
  return resource;
}

/** How many of them the receiver says that it refused (`partial_success`). */
export function refusedIn(answer: Uint8Array): number {
  try {
    return Number(ProtobufTraceSerializer.deserializeResponse(answer).partialSuccess?.rejectedSpans ?? 0);
  } catch {
    // It took the request; what it says about it is no OTLP.
    return 0;
  }
}

function readable(span: RecordedSpan, resource: Resource): ReadableSpan {
  const { name, kind, context, parentId, startedAt, endedAt, failed } = span;
  const { traceId } = context;
  const contextOf = (spanId: string): SpanContext => ({ traceId, spanId, traceFlags: TraceFlags.SAMPLED });
  return {
    name,
    kind: KINDS[kind],
    spanContext: () => contextOf(span.spanId),
    ...(parentId === undefined ? {} : { parentSpanContext: contextOf(parentId) }),
    startTime: highResolution(startedAt),
    endTime: highResolution(endedAt),
    duration: highResolution(endedAt - startedAt),
    status: { code: failed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes: attributesOf(span),
    links: [],
    events: [],
    ended: true,
    resource,
    instrumentationScope: SCOPE,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

/** No secret goes in; this is for what nobody has thought of, as in the log. */
function attributesOf({ attributes }: RecordedSpan): Record<string, string | number | boolean | string[]> {
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, cleanOf(value)]));
}

function cleanOf(value: AttributeValue): string | number | boolean | string[] {
  if (typeof value === 'string') return redactText(value);
  return typeof value === 'object' ? value.map(redactText) : value;
}

/** A time in OpenTelemetry's form: seconds and nanoseconds. */
export function highResolution(ms: number): [number, number] {
  const seconds = Math.trunc(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}
