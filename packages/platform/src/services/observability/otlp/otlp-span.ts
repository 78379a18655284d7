/** A value of an attribute (opentelemetry-proto, AnyValue). */
export type AttributeValue = string | number | boolean | null | AttributeValue[] | { [name: string]: AttributeValue };

export type Attributes = Record<string, AttributeValue>;

/** What happened within a span. */
export interface OtlpEvent {
  name: string;
  /** Nanoseconds since the epoch. */
  at: bigint;
  attributes: Attributes;
}

/** A span as its sender wrote it (opentelemetry-proto, trace/v1), with what it is of. */
export interface OtlpSpan {
  /** 32 and 16 hexadecimal digits; the parent's is empty where it has none. */
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
  /** 0 unspecified, 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  kind: number;
  startedAt: bigint;
  endedAt: bigint;
  attributes: Attributes;
  /** Attributes that were left out, by the sender or here. */
  droppedAttributes: number;
  events: OtlpEvent[];
  /** 0 unset, 1 ok, 2 error. */
  status: number;
  statusMessage: string;
  /** Of the resource, such as `service.name`. */
  resource: Attributes;
  /** Name of the library that made it. */
  scope: string;
}

/** What of a span is kept at most. */
export const MOST_ATTRIBUTES = 256;
export const MOST_EVENTS = 128;
/** Values are nested so deep at most; what is deeper is null. */
export const MOST_DEPTH = 8;
export const MOST_ITEMS = 1_000;

/** Adds an attribute unless there are enough; says whether it was taken. Names that objects have by themselves are left out. */
export function addAttribute(attributes: Attributes, name: string, value: AttributeValue, count: number): boolean {
  if (count >= MOST_ATTRIBUTES || name === '' || name === '__proto__') return false;
  attributes[name] = value;
  return true;
}
