import type { DocumentValue } from '@agentplatform/contract';
import { isObject, own } from '../tools/json-pointer.ts';
import { percentEncoded } from './percent.ts';
import type { ShapeTable } from './shape.ts';
import { textOf } from './style.ts';

/** A body of the protocol awsQuery: structures by dots, entries of lists and maps by numbers. */
export function awsQuery(
  shapes: ShapeTable,
  shape: string,
  value: DocumentValue,
  constants: { [name: string]: string },
): string {
  const found: [string, DocumentValue][] = Object.entries(constants);
  write(shapes, shape, value, '', false, found);
  return found.map(([name, one]) => `${percentEncoded(name, name)}=${percentEncoded(textOf(one), name)}`).join('&');
}

function write(
  shapes: ShapeTable,
  name: string,
  value: DocumentValue | undefined,
  at: string,
  flattened: boolean,
  found: [string, DocumentValue][],
): void {
  if (value === undefined || value === null) return;
  const shape = shapes[name];
  if (shape?.kind === 'structure' && isObject(value)) {
    for (const member of shape.members) {
      const inner = at === '' ? member.name : `${at}.${member.name}`;
      write(shapes, member.shape, own(value, member.argument), inner, member.flattened === true, found);
    }
  } else if (shape?.kind === 'list' && Array.isArray(value)) {
    const inner = flattened ? at : `${at}.${shape.member}`;
    if (value.length === 0) found.push([at, '']);
    for (const [index, item] of value.entries()) write(shapes, shape.of, item, `${inner}.${index + 1}`, false, found);
  } else if (shape?.kind === 'map' && isObject(value)) {
    const inner = flattened ? at : `${at}.entry`;
    for (const [index, [key, item]] of Object.entries(value).entries()) {
      found.push([`${inner}.${index + 1}.${shape.key}`, key]);
      write(shapes, shape.of, item, `${inner}.${index + 1}.${shape.value}`, false, found);
    }
  } else found.push([at, value]);
}
