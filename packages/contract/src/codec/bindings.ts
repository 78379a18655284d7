import { type MemberDef, shapeIn } from '../model.ts';
import type { PlaneCodec } from './planes.ts';
import { type TextReader, textReader } from './text-values.ts';
import { reportAt, type Walk } from './walk.ts';
import { decodePercent, type WireRequest } from './wire-request.ts';

/** The parts of a request that bindings read. */
export interface BoundParts {
  labels: WireRequest['labels'];
  query: ReadonlyMap<string, string[]>;
  headers: WireRequest['headers'];
}

/** Takes one member of the input from where the model says it travels. */
export type Binding = (parts: BoundParts, input: Record<string, unknown>, walk: Walk) => void;

/** Compiles the binding of a member that has a location. */
export function bindingOf(codec: PlaneCodec, name: string, member: MemberDef): Binding {
  const wire = member.locationName ?? name;
  const shape = shapeIn(codec.model, member.shape);
  const element = shape.type === 'list' ? shape.member : undefined;
  const target = element ?? member;
  const read = textReader(codec.model, target, codec.reader(target.shape));
  switch (member.location) {
    case 'uri':
      return label(name, wire, read);
    case 'header':
      if (element !== undefined) throw new Error(`${name} is a list in a header, which nothing here reads`);
      return header(name, wire.toLowerCase(), read);
    case 'headers':
      return prefixHeaders(name, wire.toLowerCase());
    case 'querystring':
      if (shape.type === 'map') return wholeQuery(name);
      return element === undefined ? queryValue(name, wire, read) : queryList(name, wire, read);
    default:
      throw new Error(`${name} has no binding`);
  }
}

function readInto(input: Record<string, unknown>, name: string, text: string, read: TextReader, walk: Walk): void {
  walk.path.push(name);
  const value = read(text, walk);
  walk.path.pop();
  if (value !== undefined) input[name] = value;
}

function readList(input: Record<string, unknown>, name: string, texts: string[], read: TextReader, walk: Walk): void {
  walk.path.push(name);
  input[name] = texts.map((text, index) => {
    walk.path.push(index);
    const value = read(text, walk);
    walk.path.pop();
    return value;
  });
  walk.path.pop();
}

function label(name: string, wire: string, read: TextReader): Binding {
  return ({ labels }, input, walk) => {
    const raw = labels[wire];
    if (raw === undefined) return;
    const text = decodePercent(raw);
    if (text === undefined) reportAt(walk, name, 'has a broken percent-encoding');
    else readInto(input, name, text, read, walk);
  };
}

function headerText(headers: WireRequest['headers'], name: string): string | undefined {
  const value = Object.hasOwn(headers, name) ? headers[name] : undefined;
  return Array.isArray(value) ? value.join(', ') : value;
}

function header(name: string, wire: string, read: TextReader): Binding {
  return ({ headers }, input, walk) => {
    const text = headerText(headers, wire);
    if (text !== undefined) readInto(input, name, text, read, walk);
  };
}

function prefixHeaders(name: string, prefix: string): Binding {
  return ({ headers }, input) => {
    const keys = Object.keys(headers).filter((key) => key.startsWith(prefix) && key !== `${prefix}__proto__`);
    const entries = keys.flatMap((key) => {
      const text = headerText(headers, key);
      return text === undefined ? [] : [[key.slice(prefix.length), text]];
    });
    if (entries.length > 0) input[name] = Object.fromEntries(entries);
  };
}

function queryValue(name: string, wire: string, read: TextReader): Binding {
  return ({ query }, input, walk) => {
    const [text, second] = query.get(wire) ?? [];
    if (text === undefined) return;
    // Two values for one field would let what is authorized and what is done disagree.
    if (second !== undefined) reportAt(walk, name, 'is given more than once');
    else readInto(input, name, text, read, walk);
  };
}

function queryList(name: string, wire: string, read: TextReader): Binding {
  return ({ query }, input, walk) => {
    const texts = query.get(wire);
    if (texts !== undefined) readList(input, name, texts, read, walk);
  };
}

/** A map that takes every parameter of the query, the first value of each. */
function wholeQuery(name: string): Binding {
  return ({ query }, input) => {
    const entries = [...query].filter(([key]) => key !== '__proto__').map(([key, [first]]) => [key, first]);
    if (entries.length > 0) input[name] = Object.fromEntries(entries);
  };
}
