import type { DocumentValue } from '@agentplatform/contract';
import { isObject, own } from '../tools/json-pointer.ts';
import { RefusedArgumentError } from './refused-argument.ts';
import type { ShapeTable, XmlNamespace } from './shape.ts';
import { textOf } from './style.ts';

/** A body of the protocol restXml, in the element that the shape names. Throws `RefusedArgumentError` for characters that XML has not. */
export function writeXml(shapes: ShapeTable, name: string, value: DocumentValue): string {
  const shape = shapes[name];
  const root = shape && 'name' in shape ? shape.name : name;
  return element(shapes, { tag: root }, name, value);
}

/** What an element is called, and whether the entries in it stand for themselves. */
interface Around extends XmlNamespace {
  tag: string;
  flattened?: boolean | undefined;
}

function element(shapes: ShapeTable, around: Around, name: string, value: DocumentValue): string {
  const shape = shapes[name];
  const { tag, flattened = false } = around;
  const head = `${tag}${declared(around)}`;
  if (shape?.kind === 'structure' && isObject(value)) {
    const given = shape.members.flatMap((member) => {
      const one = own(value, member.argument);
      return one === undefined || one === null ? [] : [{ member, one }];
    });
    const attributes = given
      .filter(({ member }) => member.attribute === true)
      .map(({ member, one }) => ` ${member.name}="${escaped(textOf(one))}"`);
    const inner = given
      .filter(({ member }) => member.attribute !== true)
      .map(({ member, one }) => element(shapes, { ...member, tag: member.name }, member.shape, one));
    const inherent = around.namespace === undefined ? declared(shape) : '';
    return `<${head}${inherent}${attributes.join('')}>${inner.join('')}</${tag}>`;
  }
  if (shape?.kind === 'list' && Array.isArray(value)) {
    const item = { ...shape.each, tag: flattened ? tag : shape.member };
    const items = value.map((one) => element(shapes, item, shape.of, one)).join('');
    return flattened ? items : `<${head}>${items}</${tag}>`;
  }
  if (shape?.kind === 'map' && isObject(value)) {
    const entry = flattened ? tag : 'entry';
    const entries = Object.entries(value).map(([key, one]) => {
      const written = `<${shape.key}${declared(shape.keys ?? {})}>${escaped(key)}</${shape.key}>`;
      const named = { ...shape.values, tag: shape.value };
      return `<${flattened ? head : entry}>${written}${element(shapes, named, shape.of, one ?? null)}</${entry}>`;
    });
    return flattened ? entries.join('') : `<${head}>${entries.join('')}</${tag}>`;
  }
  return `<${head}>${escaped(textOf(value))}</${tag}>`;
}

function declared({ namespace, prefix }: XmlNamespace): string {
  if (namespace === undefined) return '';
  return ` ${prefix === undefined ? 'xmlns' : `xmlns:${prefix}`}="${escaped(namespace)}"`;
}

const ENTITIES: { [char: string]: string } = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\r': '&#xD;',
  '\n': '&#xA;',
};

function escaped(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  if (/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/.test(text) || !text.isWellFormed())
    throw new RefusedArgumentError('The arguments hold a character that XML cannot carry.');
  return text.replace(/[&<>"\r\n]/g, (char) => ENTITIES[char] ?? char);
}
