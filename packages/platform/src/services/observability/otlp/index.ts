export { spansInJson } from './json-traces.ts';
export type { Attributes, AttributeValue, OtlpSpan } from './otlp-span.ts';
export { spansInProtobuf } from './protobuf-traces.ts';
export { BrokenMessageError } from './wire-reader.ts';
