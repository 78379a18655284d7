import type { Shape, ShapeMember, ShapeTable, XmlNamespace } from '../http-tools/shape.ts';
import { isObject } from '../tools/json-pointer.ts';
import { localName, type Member, type Model, type ModelShape, type Traits } from './model.ts';
import { formatOf } from './schemas.ts';

const NUMBERS = new Set(['byte', 'short', 'integer', 'long', 'float', 'double', 'bigInteger', 'bigDecimal', 'intEnum']);

/** No id of a shape. */
const SECONDS = 'seconds';

/** The shapes of XML and query bodies, as far as the bodies of one operation reach them. */
export class WireShapes {
  readonly table: ShapeTable = {};
  readonly #model: Model;
  readonly #service: ModelShape;
  readonly #isQuery: boolean;

  constructor(model: Model, service: ModelShape, isQuery: boolean) {
    this.#model = model;
    this.#service = service;
    this.#isQuery = isQuery;
  }

  /** Notes a structure of these members under `key`, and all that it reaches; `name` is the element around it, in the namespace of the service where it has none. */
  structure(key: string, name: string, shape: ModelShape, members: readonly Member[]): string {
    this.table[key] = {
      kind: 'structure',
      name,
      members: members.map((member) => this.#member(member)),
      ...namespaceOf((shape.traits.xmlNamespace === undefined ? this.#service : shape).traits),
    };
    return key;
  }

  #member({ name, target, traits }: Member): ShapeMember {
    const shape = this.#isNumber(target, traits) ? this.#number() : this.#note(target);
    return {
      argument: name,
      name: typeof traits.xmlName === 'string' ? traits.xmlName : name,
      shape,
      ...(traits.xmlAttribute === undefined || this.#isQuery ? {} : { attribute: true }),
      ...(traits.xmlFlattened === undefined ? {} : { flattened: true }),
      ...namespaceOf(traits),
    };
  }

  /** A time in seconds. */
  #isNumber(target: string, traits: Traits): boolean {
    const shape = this.#model.shape(target);
    return shape.type === 'timestamp' && formatOf({ ...shape.traits, ...traits }) === 'epoch-seconds';
  }

  #number(): string {
    this.table[SECONDS] = { kind: 'number' };
    return SECONDS;
  }

  #note(id: string): string {
    if (Object.hasOwn(this.table, id)) return id;
    // Noted before what it holds, which may lead back to it.
    this.table[id] = { kind: 'string' };
    const shape = this.#model.shape(id);
    this.table[id] = this.#shape(shape);
    return id;
  }

  #shape(shape: ModelShape): Shape {
    const { type, members, id, traits } = shape;
    const name = typeof traits.xmlName === 'string' ? traits.xmlName : localName(id);
    const called = (wanted: string): Member | undefined => members.find((member) => member.name === wanted);
    if (type === 'structure' || type === 'union')
      return { kind: 'structure', name, members: members.map((member) => this.#member(member)), ...prefixed(traits) };
    const [member, key, value] = [called('member'), called('key'), called('value')];
    if ((type === 'list' || type === 'set') && member)
      return {
        ...{ kind: 'list', name, member: xmlName(member), of: this.#note(member.target) },
        ...declared('each', member),
      };
    if (type === 'map' && key && value)
      return {
        ...{ kind: 'map', name, key: xmlName(key), value: xmlName(value), of: this.#note(value.target) },
        ...declared('keys', key),
        ...declared('values', value),
      };
    if (NUMBERS.has(type)) return { kind: 'number' };
    return { kind: type === 'boolean' ? 'boolean' : 'string' };
  }
}

const xmlName = ({ name, traits }: Member): string => (typeof traits.xmlName === 'string' ? traits.xmlName : name);

function declared<Name extends string>(name: Name, { traits }: Member): { [Key in Name]?: XmlNamespace } {
  const made: { [Key in Name]?: XmlNamespace } = {};
  const namespace = namespaceOf(traits);
  if (namespace.namespace !== undefined) made[name] = namespace;
  return made;
}

/** The default namespace of a structure counts where it is the whole body alone. */
function prefixed(traits: Traits): XmlNamespace {
  const namespace = namespaceOf(traits);
  return namespace.prefix === undefined ? {} : namespace;
}

function namespaceOf({ xmlNamespace }: Traits): XmlNamespace {
  if (!isObject(xmlNamespace) || typeof xmlNamespace.uri !== 'string') return {};
  const { uri: namespace, prefix } = xmlNamespace;
  return typeof prefix === 'string' && PREFIX.test(prefix) ? { namespace, prefix } : { namespace };
}

/** A name in XML without a colon, as far as it is ASCII. */
const PREFIX = /^[A-Za-z_][\w.-]*$/;
