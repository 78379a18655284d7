import {
  type Attributes,
  type AttributeValue,
  addAttribute,
  MOST_DEPTH,
  MOST_EVENTS,
  MOST_ITEMS,
  type OtlpEvent,
  type OtlpSpan,
} from './otlp-span.ts';
import { BrokenMessageError, type Field, fieldsOf } from './wire-reader.ts';

/** The spans of an `ExportTraceServiceRequest` in protobuf. Throws `BrokenMessageError`. */
export function* spansInProtobuf(request: Buffer): Generator<OtlpSpan> {
  for (const resourceSpans of messages(request, 1)) {
    const [resource] = messages(resourceSpans, 1);
    const of = resource === undefined ? {} : attributesIn(resource, 1).attributes;
    for (const scopeSpans of messages(resourceSpans, 2)) {
      const [scope] = messages(scopeSpans, 1);
      const name = scope === undefined ? '' : textIn(scope, 1);
      for (const span of messages(scopeSpans, 2)) yield spanIn(span, of, name);
    }
  }
}

function spanIn(message: Buffer, resource: Attributes, scope: string): OtlpSpan {
  const { attributes, left } = attributesIn(message, 9);
  const span: OtlpSpan = {
    ...{ traceId: '', spanId: '', parentSpanId: '', name: '', kind: 0, startedAt: 0n, endedAt: 0n },
    ...{ attributes, droppedAttributes: left, events: [], status: 0, statusMessage: '', resource, scope },
  };
  for (const field of fieldsOf(message)) readField(span, field);
  return span;
}

function readField(span: OtlpSpan, field: Field): void {
  const { number } = field;
  if (number === 1) span.traceId = bytesOf(field).toString('hex');
  else if (number === 2) span.spanId = bytesOf(field).toString('hex');
  else if (number === 4) span.parentSpanId = bytesOf(field).toString('hex');
  else if (number === 5) span.name = bytesOf(field).toString('utf8');
  else if (number === 6) span.kind = Number(numberOf(field));
  else if (number === 7) span.startedAt = numberOf(field);
  else if (number === 8) span.endedAt = numberOf(field);
  else if (number === 10) span.droppedAttributes += Number(numberOf(field));
  else if (number === 11 && span.events.length < MOST_EVENTS) span.events.push(eventIn(bytesOf(field)));
  else if (number === 15)
    for (const part of fieldsOf(bytesOf(field))) {
      if (part.number === 2) span.statusMessage = bytesOf(part).toString('utf8');
      if (part.number === 3) span.status = Number(numberOf(part));
    }
}

function eventIn(message: Buffer): OtlpEvent {
  const event: OtlpEvent = { name: '', at: 0n, attributes: attributesIn(message, 3).attributes };
  for (const field of fieldsOf(message)) {
    if (field.number === 1) event.at = numberOf(field);
    if (field.number === 2) event.name = bytesOf(field).toString('utf8');
  }
  return event;
}

/** The members `number` that are `KeyValue`, and how many were left out. */
function attributesIn(message: Buffer, number: number): { attributes: Attributes; left: number } {
  const attributes: Attributes = {};
  let count = 0;
  let left = 0;
  for (const pair of messages(message, number)) {
    if (addAttribute(attributes, textIn(pair, 1), valueIn(pair), count)) count += 1;
    else left += 1;
  }
  return { attributes, left };
}

function valueIn(pair: Buffer, depth = 0): AttributeValue {
  const [value] = messages(pair, 2);
  return value === undefined ? null : anyValue(value, depth);
}

function anyValue(message: Buffer, depth: number): AttributeValue {
  if (depth >= MOST_DEPTH) return null;
  for (const field of fieldsOf(message)) {
    const { number } = field;
    if (number === 1) return bytesOf(field).toString('utf8');
    if (number === 2) return numberOf(field) !== 0n;
    if (number === 3) return safe(BigInt.asIntN(64, numberOf(field)));
    if (number === 4) return doubleOf(field);
    if (number === 5) return items(bytesOf(field), 1).map((item) => anyValue(item, depth + 1));
    if (number === 6)
      return Object.fromEntries(
        items(bytesOf(field), 1).map((pair) => [textIn(pair, 1), valueIn(pair, depth + 1)] as const),
      );
    if (number === 7) return bytesOf(field).toString('base64');
  }
  return null;
}

/** A whole number that JSON holds, or its digits. */
const safe = (value: bigint): number | string =>
  Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();

function* messages(message: Buffer, number: number): Generator<Buffer> {
  for (const field of fieldsOf(message)) if (field.number === number) yield bytesOf(field);
}

const items = (message: Buffer, number: number): Buffer[] => [...messages(message, number)].slice(0, MOST_ITEMS);

function textIn(message: Buffer, number: number): string {
  const [text] = messages(message, number);
  return text?.toString('utf8') ?? '';
}

function bytesOf(field: Field): Buffer {
  if (field.kind !== 'bytes') throw new BrokenMessageError(`field ${field.number} is not of its type`);
  return field.value;
}

function numberOf(field: Field): bigint {
  if (field.kind === 'bytes') throw new BrokenMessageError(`field ${field.number} is not of its type`);
  return BigInt(field.value);
}

function doubleOf(field: Field): number {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(numberOf(field));
  const value = bytes.readDoubleLE(0);
  return Number.isFinite(value) ? value : 0;
}
