import type { DocumentValue } from '@agentplatform/contract';
import { SaxesParser } from 'saxes';
import type { Shape, ShapeTable } from './shape.ts';

interface Element {
  name: string;
  attributes: { [name: string]: string };
  text: string;
  children: Element[];
}

/** Elements of one answer and how deep they may be nested. */
const MOST_ELEMENTS = 200_000;
const MOST_DEPTH = 100;

/**
 * An XML answer as the JSON that its shape describes; `within` are elements around it, outermost first, and one that is `unwrapped` has none around its
 * member. Undefined for what is no such XML.
 */
export function readXml(
  text: string,
  shapes: ShapeTable,
  { shape, within = [], unwrapped = false }: { shape: string; within?: readonly string[]; unwrapped?: boolean },
): DocumentValue | undefined {
  const root = parse(text);
  if (root && unwrapped) return jsonOf({ name: '', attributes: {}, text: '', children: [root] }, shapes, shape);
  let at = root;
  for (const name of within) at = at?.name === name ? at : at?.children.find((child) => child.name === name);
  return at && jsonOf(at, shapes, shape);
}

function parse(text: string): Element | undefined {
  const top: Element = { name: '', attributes: {}, text: '', children: [] };
  const open = [top];
  let elements = 0;
  const parser = new SaxesParser();
  parser.on('opentag', ({ name, attributes }) => {
    elements += 1;
    if (elements > MOST_ELEMENTS || open.length > MOST_DEPTH) throw new Error('too large');
    const element: Element = {
      name: local(name),
      attributes: Object.fromEntries(Object.entries(attributes)),
      text: '',
      children: [],
    };
    open.at(-1)?.children.push(element);
    open.push(element);
  });
  parser.on('closetag', () => void open.pop());
  const add = (part: string): void => {
    const element = open.at(-1);
    if (element) element.text += part;
  };
  parser.on('text', add);
  parser.on('cdata', add);
  parser.on('error', (error) => {
    throw error;
  });
  try {
    parser.write(text).close();
  } catch {
    return undefined;
  }
  return top.children[0];
}

const local = (name: string): string => name.slice(name.indexOf(':') + 1);

function jsonOf(element: Element, shapes: ShapeTable, name: string): DocumentValue {
  const shape: Shape | undefined = shapes[name];
  switch (shape?.kind) {
    case 'structure':
      return structureOf(element, shapes, shape);
    case 'list':
      return element.children.map((child) => jsonOf(child, shapes, shape.of));
    case 'map':
      return mapOf(element.children, shapes, shape);
    case 'number':
      return Number.isFinite(Number(element.text)) && element.text.trim() !== '' ? Number(element.text) : element.text;
    case 'boolean':
      return element.text === 'true';
    default:
      return element.text;
  }
}

function structureOf(element: Element, shapes: ShapeTable, { members }: Shape & { kind: 'structure' }): DocumentValue {
  const found = members.flatMap((member): [string, DocumentValue][] => {
    if (member.attribute === true) {
      const text = element.attributes[member.name];
      return text === undefined ? [] : [[member.argument, jsonOf({ ...element, text }, shapes, member.shape)]];
    }
    const children = element.children.filter((child) => child.name === local(member.name));
    const [first] = children;
    if (!first) return [];
    const shape = shapes[member.shape];
    if (member.flattened === true && shape?.kind === 'list')
      return [[member.argument, children.map((child) => jsonOf(child, shapes, shape.of))]];
    if (member.flattened === true && shape?.kind === 'map') return [[member.argument, mapOf(children, shapes, shape)]];
    return [[member.argument, jsonOf(first, shapes, member.shape)]];
  });
  return Object.fromEntries(found);
}

function mapOf(
  entries: readonly Element[],
  shapes: ShapeTable,
  { key, value, of }: Shape & { kind: 'map' },
): DocumentValue {
  const pairs = entries.flatMap(({ children }): [string, DocumentValue][] => {
    const name = children.find((child) => child.name === key);
    const one = children.find((child) => child.name === value);
    return name && one ? [[name.text, jsonOf(one, shapes, of)]] : [];
  });
  return Object.fromEntries(pairs);
}
