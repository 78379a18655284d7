import { readFileSync } from 'node:fs';

/**
 * Which of the vendor's models an operation or shape belongs to; all are served from one address. `data` and `control` are AgentCore's, `models` is as much of
 * Bedrock Runtime as an agent needs to ask a model.
 */
export type Plane = 'data' | 'control' | 'models';

export const planes = ['data', 'control', 'models'] as const satisfies readonly Plane[];

/** How a structure's member is carried: its shape by name, and where on the wire it goes when not in the body. */
export interface MemberDef {
  shape: string;
  location?: 'uri' | 'querystring' | 'header' | 'headers' | 'statusCode';
  locationName?: string;
  timestampFormat?: TimestampFormat;
  idempotencyToken?: boolean;
  jsonvalue?: boolean;
  eventpayload?: boolean;
  eventheader?: boolean;
}

export type TimestampFormat = 'iso8601' | 'unixTimestamp' | 'rfc822';

/** One shape of the published model with its constraints, in the model's own words, without its prose. */
export interface ShapeDef {
  type:
    | 'structure'
    | 'list'
    | 'map'
    | 'string'
    | 'boolean'
    | 'integer'
    | 'long'
    | 'float'
    | 'double'
    | 'blob'
    | 'timestamp';
  members?: Record<string, MemberDef>;
  required?: readonly string[];
  payload?: string;
  member?: MemberDef;
  key?: MemberDef;
  value?: MemberDef;
  min?: number;
  max?: number;
  pattern?: string;
  enum?: readonly string[];
  timestampFormat?: TimestampFormat;
  document?: boolean;
  union?: boolean;
  sensitive?: boolean;
  streaming?: boolean;
  eventstream?: boolean;
  event?: boolean;
  exception?: boolean;
  fault?: boolean;
  retryable?: { throttling?: boolean };
  error?: { httpStatusCode?: number; code?: string; senderFault?: boolean };
}

/** One operation as the model states it. */
export interface OperationDef {
  http: { method: string; requestUri: string; responseCode: number };
  input: string;
  output: string;
  errors: readonly string[];
  idempotent?: boolean;
  readonly?: boolean;
}

export interface PlaneModel {
  apiVersion: string;
  serviceId: string;
  /** The service that requests are signed for, and the prefix of its actions in policies. */
  signingName: string;
  operations: Record<string, OperationDef>;
  shapes: Record<string, ShapeDef>;
}

/** The stored model: everything else in `generated/` is derived from it. */
export interface Model {
  source: string;
  version: string;
  planes: Record<Plane, PlaneModel>;
}

let loaded: Model | undefined;

/**
 * The published model that this contract was generated from, read once from `generated/model.json`.
 * It is plain JSON and not TypeScript because parsing 400 KB of JSON is some ten times faster than stripping types from it.
 */
export function contractModel(): Model {
  loaded ??= JSON.parse(readFileSync(new URL('./generated/model.json', import.meta.url), 'utf8')) as Model;
  return loaded;
}

/** The shape called `name`; throws when the model does not have it, which only a broken model can cause. */
export function shapeIn(plane: PlaneModel, name: string): ShapeDef {
  const shape = plane.shapes[name];
  if (shape === undefined) throw new Error(`The model has no shape "${name}"`);
  return shape;
}
