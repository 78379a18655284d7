import type { DocumentValue } from '@agentplatform/contract';
import { isObject, own } from '../tools/json-pointer.ts';
import type { JsonObject } from '../tools/tool.ts';

/** Traits by their names, those of the prelude without its namespace. */
export type Traits = JsonObject;

/** A member of a shape: what it is of, and what is said of it. */
export interface Member {
  name: string;
  target: string;
  traits: Traits;
}

/** A shape of a model. */
export interface ModelShape {
  id: string;
  type: string;
  traits: Traits;
  members: Member[];
  /** The shape as it stands in the model, for what only some types have. */
  raw: JsonObject;
}

/** What no model has to declare. */
const PRELUDE: { [name: string]: string } = {
  String: 'string',
  Blob: 'blob',
  Boolean: 'boolean',
  PrimitiveBoolean: 'boolean',
  Byte: 'byte',
  PrimitiveByte: 'byte',
  Short: 'short',
  PrimitiveShort: 'short',
  Integer: 'integer',
  PrimitiveInteger: 'integer',
  Long: 'long',
  PrimitiveLong: 'long',
  Float: 'float',
  PrimitiveFloat: 'float',
  Double: 'double',
  PrimitiveDouble: 'double',
  BigInteger: 'bigInteger',
  BigDecimal: 'bigDecimal',
  Timestamp: 'timestamp',
  Document: 'document',
  Unit: 'structure',
};

/** A model that cannot be used, or a part of it. */
export class BrokenModelError extends Error {
  override readonly name = 'BrokenModelError';
}

const MOST_MIXINS = 32;

/** A model in Smithy's JSON AST, by its shapes. */
export class Model {
  readonly #shapes: JsonObject;
  /** Traits that are applied to shapes and members elsewhere, by what they are applied to. */
  readonly #applied = new Map<string, JsonObject>();
  readonly #read = new Map<string, ModelShape>();

  /** Throws `BrokenModelError` for what is no model. */
  constructor(root: DocumentValue) {
    if (!isObject(root) || typeof root.smithy !== 'string' || !isObject(root.shapes))
      throw new BrokenModelError('This is not a Smithy model in JSON: it has no members "smithy" and "shapes".');
    if (!/^[12](?:\.\d+)*$/.test(root.smithy))
      throw new BrokenModelError(`Smithy 1 and 2 are read, not ${root.smithy.slice(0, 20)}.`);
    this.#shapes = root.shapes;
    for (const [id, shape] of Object.entries(root.shapes))
      if (isObject(shape) && shape.type === 'apply' && isObject(shape.traits)) this.#applied.set(id, shape.traits);
  }

  /** Ids of the shapes of a type, in the order of the model. */
  ofType(type: string): string[] {
    return Object.entries(this.#shapes).flatMap(([id, shape]) => (isObject(shape) && shape.type === type ? [id] : []));
  }

  /** Throws `BrokenModelError` for a shape that the model has not. */
  shape(id: string): ModelShape {
    const known = this.#read.get(id);
    if (known) return known;
    const read = this.#readShape(id, 0);
    this.#read.set(id, read);
    return read;
  }

  #readShape(id: string, mixins: number): ModelShape {
    const raw = own(this.#shapes, id);
    if (!isObject(raw) || typeof raw.type !== 'string' || raw.type === 'apply') {
      const type = id.startsWith('smithy.api#') ? own(PRELUDE, id.slice('smithy.api#'.length)) : undefined;
      if (typeof type !== 'string') throw new BrokenModelError(`The model has no shape ${id.slice(0, 200)}.`);
      return { id, type, traits: {}, members: [], raw: {} };
    }
    if (mixins > MOST_MIXINS) throw new BrokenModelError(`The mixins of ${id.slice(0, 200)} lead on and on.`);
    const mixed = listOf(raw.mixins).map((one) => this.#readShape(targetOf(one), mixins + 1));
    const inherited = mixed.flatMap((one) => one.members.map((member) => this.#inherited(id, member)));
    const members = isObject(raw.members) ? Object.entries(raw.members) : entriesOf(raw);
    const declared = members.map(([name, member]) => this.#member(id, name, member));
    return {
      id,
      type: raw.type,
      traits: {
        ...Object.assign({}, ...mixed.map(traitsOfMixin)),
        ...plainNames(raw.traits),
        ...plainNames(this.#applied.get(id)),
      },
      members: [...new Map([...inherited, ...declared].map((member) => [member.name, member])).values()],
      raw,
    };
  }

  /** A member of a mixin, with what is said of it where it is used. */
  #inherited(id: string, member: Member): Member {
    return { ...member, traits: { ...member.traits, ...plainNames(this.#applied.get(`${id}$${member.name}`)) } };
  }

  #member(id: string, name: string, value: DocumentValue | undefined): Member {
    const applied = plainNames(this.#applied.get(`${id}$${name}`));
    return {
      name,
      target: targetOf(value),
      traits: { ...(isObject(value) ? plainNames(value.traits) : {}), ...applied },
    };
  }
}

/** What a mixin hands on of what is said of it. */
function traitsOfMixin({ traits: { mixin, ...traits } }: ModelShape): Traits {
  const local = isObject(mixin) ? listOf(mixin.localTraits) : [];
  const names = new Set(
    local.map((id) => (typeof id === 'string' && id.startsWith('smithy.api#') ? localName(id) : id)),
  );
  return Object.fromEntries(Object.entries(traits).filter(([name]) => !names.has(name)));
}

/** The members of lists and maps stand beside the type. */
function entriesOf(raw: JsonObject): [string, DocumentValue | undefined][] {
  return ['member', 'key', 'value'].flatMap((name): [string, DocumentValue | undefined][] =>
    raw[name] === undefined ? [] : [[name, raw[name]]],
  );
}

/** The id that a reference names; empty for none, which no shape has. */
export function targetOf(reference: DocumentValue | undefined): string {
  return isObject(reference) && typeof reference.target === 'string' ? reference.target : '';
}

export const listOf = (value: DocumentValue | undefined): DocumentValue[] => (Array.isArray(value) ? value : []);

/** The name of a shape within its namespace. */
export const localName = (id: string): string => id.slice(id.indexOf('#') + 1);

function plainNames(traits: DocumentValue | undefined): Traits {
  if (!isObject(traits)) return {};
  return Object.fromEntries(
    Object.entries(traits).map(([id, value]) => [id.startsWith('smithy.api#') ? localName(id) : id, value]),
  );
}
