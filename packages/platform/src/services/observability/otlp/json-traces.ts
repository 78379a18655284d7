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
import { BrokenMessageError } from './wire-reader.ts';

/** The spans of an `ExportTraceServiceRequest` in OTLP's JSON (OTLP 1.x, JSON Protobuf encoding: ids are hexadecimal, 64-bit numbers texts). Throws `BrokenMessageError`. */
export function* spansInJson(text: string): Generator<OtlpSpan> {
  for (const resourceSpans of listIn(parsed(text), 'resourceSpans')) {
    const resource = attributesOf(listIn(memberOf(resourceSpans, 'resource'), 'attributes')).attributes;
    for (const scopeSpans of listIn(resourceSpans, 'scopeSpans')) {
      const scope = textIn(memberOf(scopeSpans, 'scope'), 'name');
      for (const span of listIn(scopeSpans, 'spans')) yield spanOf(span, resource, scope);
    }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new BrokenMessageError('the body is no JSON');
  }
}

function spanOf(span: unknown, resource: Attributes, scope: string): OtlpSpan {
  const { attributes, left } = attributesOf(listIn(span, 'attributes'));
  const status = memberOf(span, 'status');
  return {
    traceId: textIn(span, 'traceId').toLowerCase(),
    spanId: textIn(span, 'spanId').toLowerCase(),
    parentSpanId: textIn(span, 'parentSpanId').toLowerCase(),
    name: textIn(span, 'name'),
    kind: Number(wholeIn(span, 'kind')),
    startedAt: wholeIn(span, 'startTimeUnixNano'),
    endedAt: wholeIn(span, 'endTimeUnixNano'),
    attributes,
    droppedAttributes: left + Number(wholeIn(span, 'droppedAttributesCount')),
    events: listIn(span, 'events').slice(0, MOST_EVENTS).map(eventOf),
    status: Number(wholeIn(status, 'code')),
    statusMessage: textIn(status, 'message'),
    ...{ resource, scope },
  };
}

const eventOf = (event: unknown): OtlpEvent => ({
  name: textIn(event, 'name'),
  at: wholeIn(event, 'timeUnixNano'),
  attributes: attributesOf(listIn(event, 'attributes')).attributes,
});

function attributesOf(pairs: readonly unknown[]): { attributes: Attributes; left: number } {
  const attributes: Attributes = {};
  let count = 0;
  for (const pair of pairs)
    if (addAttribute(attributes, textIn(pair, 'key'), anyValue(memberOf(pair, 'value'), 0), count)) count += 1;
  return { attributes, left: pairs.length - count };
}

function anyValue(value: unknown, depth: number): AttributeValue {
  if (depth >= MOST_DEPTH) return null;
  const text = memberOf(value, 'stringValue');
  if (typeof text === 'string') return text;
  const flag = memberOf(value, 'boolValue');
  if (typeof flag === 'boolean') return flag;
  const whole = memberOf(value, 'intValue');
  if (whole !== undefined) return Number.isSafeInteger(Number(whole)) ? Number(whole) : String(whole);
  const double = memberOf(value, 'doubleValue');
  if (double !== undefined) return Number.isFinite(Number(double)) ? Number(double) : 0;
  const list = memberOf(value, 'arrayValue');
  if (list !== undefined)
    return listIn(list, 'values')
      .slice(0, MOST_ITEMS)
      .map((item) => anyValue(item, depth + 1));
  const members = memberOf(value, 'kvlistValue');
  if (members !== undefined)
    return Object.fromEntries(
      listIn(members, 'values')
        .slice(0, MOST_ITEMS)
        .map((pair) => [textIn(pair, 'key'), anyValue(memberOf(pair, 'value'), depth + 1)] as const),
    );
  const bytes = memberOf(value, 'bytesValue');
  return typeof bytes === 'string' ? bytes : null;
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return Reflect.get(value, name) ?? undefined;
}

function listIn(value: unknown, name: string): unknown[] {
  const found = memberOf(value, name);
  if (found === undefined) return [];
  if (!Array.isArray(found)) throw new BrokenMessageError(`${name} is no list`);
  return found;
}

function textIn(value: unknown, name: string): string {
  const found = memberOf(value, name) ?? '';
  if (typeof found !== 'string') throw new BrokenMessageError(`${name} is no text`);
  return found;
}

function wholeIn(value: unknown, name: string): bigint {
  const found = memberOf(value, name) ?? 0;
  if (typeof found === 'number' && Number.isInteger(found)) return BigInt(found);
  if (typeof found === 'string' && /^\d{1,20}$/.test(found)) return BigInt(found);
  throw new BrokenMessageError(`${name} is no whole number`);
}
