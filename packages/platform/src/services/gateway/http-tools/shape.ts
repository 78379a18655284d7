/** A member of a structure, as it is called in JSON and on the wire. */
export interface ShapeMember {
  argument: string;
  name: string;
  shape: string;
  /** XML: an attribute of its structure. */
  attribute?: boolean;
  /** Lists and maps: its entries stand for themselves, without an element or a name around them. */
  flattened?: boolean;
}

/** How a value of a model is written where JSON does not say it. */
export type Shape =
  | { kind: 'structure'; name: string; members: ShapeMember[]; namespace?: string }
  | { kind: 'list'; member: string; name: string }
  | { kind: 'map'; value: string; entry: string; key: string; name: string }
  | { kind: 'string' | 'boolean' | 'number' }
  | { kind: 'timestamp'; format: 'date-time' | 'epoch-seconds' | 'http-date' };

/** Shapes by name; they may refer to themselves. */
export type ShapeTable = { [name: string]: Shape };
