/** A namespace that an element declares. */
export interface XmlNamespace {
  namespace?: string;
  /** Absent for the default namespace. */
  prefix?: string;
}

/** A member of a structure, as it is called in JSON and on the wire. */
export interface ShapeMember extends XmlNamespace {
  argument: string;
  name: string;
  shape: string;
  /** XML: an attribute of its structure. */
  attribute?: boolean;
  /** Lists and maps: their entries stand for themselves, without an element or a name around them. */
  flattened?: boolean;
}

/** How a value of a model is written where JSON does not say it. `name` is the element's where nothing around it names it. */
export type Shape =
  | ({ kind: 'structure'; name: string; members: ShapeMember[] } & XmlNamespace)
  | { kind: 'list'; name: string; member: string; of: string; each?: XmlNamespace }
  | { kind: 'map'; name: string; key: string; value: string; of: string; keys?: XmlNamespace; values?: XmlNamespace }
  | { kind: 'string' | 'boolean' | 'number' };

/** Shapes by name; they may refer to themselves. */
export type ShapeTable = { [name: string]: Shape };
