import type { DocumentValue } from '@agentplatform/contract';
import { isObject, own } from '../tools/json-pointer.ts';
import { RefusedArgumentError } from './refused-argument.ts';
import type { ShapeTable } from './shape.ts';
import { textOf } from './style.ts';

/** A body of the protocol restXml, in the element that the shape names. Throws `RefusedArgumentError` for characters that XML has not. */
export function writeXml(shapes: ShapeTable, name: string, value: DocumentValue): string {
  const shape = shapes[name];
  const root = shape && 'name' in shape ? shape.name : name;
  return element(shapes, root, name, value, false);
}

function element(shapes: ShapeTable, tag: string, name: string, value: DocumentValue, flattened: boolean): string {
  const shape = shapes[name];
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
      .map(({ member, one }) => element(shapes, member.name, member.shape, one, member.flattened === true));
    const { namespace, prefix } = shape;
    const name = prefix === undefined ? 'xmlns' : `xmlns:${prefix}`;
    const declared = namespace === undefined ? '' : ` ${name}="${escaped(namespace)}"`;
    return `<${tag}${declared}${attributes.join('')}>${inner.join('')}</${tag}>`;
  }
  if (shape?.kind === 'list' && Array.isArray(value)) {
    const items = value.map((item) => element(shapes, flattened ? tag : shape.member, shape.of, item, false)).join('');
    return flattened ? items : `<${tag}>${items}</${tag}>`;
  }
  if (shape?.kind === 'map' && isObject(value)) {
    const around = flattened ? tag : 'entry';
    const entries = Object.entries(value).map(
      ([key, item]) =>
        `<${around}><${shape.key}>${escaped(key)}</${shape.key}>${element(shapes, shape.value, shape.of, item ?? null, false)}</${around}>`,
    );
    return flattened ? entries.join('') : `<${tag}>${entries.join('')}</${tag}>`;
  }
  return `<${tag}>${escaped(textOf(value))}</${tag}>`;
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
