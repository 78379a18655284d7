import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { refuseUnserved } from '../../../kernel/served-fields.ts';
import { HARNESS_FIELDS, INVOCATION_FIELDS } from './harness-fields.ts';

interface Shape {
  type: string;
  members?: Record<string, { shape: string }>;
  /** Of a list. */
  member?: { shape: string };
}
type Shapes = Record<string, Shape>;
const { planes } = JSON.parse(
  readFileSync(new URL('../../../../../contract/src/generated/model.json', import.meta.url), 'utf8'),
) as { planes: Record<'control' | 'data', { shapes: Shapes }> };

/** What is inside of a structure, and of a list of structures; undefined for a leaf. */
function membersOf(shapes: Shapes, name: string): Record<string, { shape: string }> | undefined {
  const { type, member, members } = shapes[name] ?? {};
  if (type === 'list') return member && membersOf(shapes, member.shape);
  return type === 'structure' || type === 'union' ? members : undefined;
}

/** The leaves of a request, but for those below a field that is refused whole. */
function leaves(shapes: Shapes, name: string, table: Readonly<Record<string, string>>, path = ''): string[] {
  return Object.entries(membersOf(shapes, name) ?? {}).flatMap(([member, { shape }]): string[] => {
    const at = path === '' ? member : `${path}.${member}`;
    if (Object.hasOwn(table, at) && table[at] !== 'served') return [at];
    return Object.keys(membersOf(shapes, shape) ?? {}).length > 0 ? leaves(shapes, shape, table, at) : [at];
  });
}

describe.each([
  { table: HARNESS_FIELDS, request: 'CreateHarnessRequest', shapes: planes.control.shapes },
  { table: INVOCATION_FIELDS, request: 'InvokeHarnessRequest', shapes: planes.data.shapes },
])('the fields of $request', ({ table, request, shapes }) => {
  it('each have a line, down to the last, and no other has', () => {
    expect(Object.keys(table).sort()).toEqual(leaves(shapes, request, table).sort());
  });

  it('are refused by name where they are not served', () => {
    for (const [line, state] of Object.entries(table)) {
      const call = line.split('.').reduceRight<unknown>((value, member) => ({ [member]: value }), 'given') as object;
      if (state === 'served') expect(() => refuseUnserved(call, table), line).not.toThrow();
      else expect(() => refuseUnserved(call, table), line).toThrow(line);
    }
  });
});

it('an update has the fields of a create, but for its name and its tags', () => {
  const of = (request: string) => Object.keys(planes.control.shapes[request]?.members ?? {});
  const beside = new Set(['harnessId', 'harnessName', 'tags']);
  expect(
    of('UpdateHarnessRequest')
      .filter((name) => !beside.has(name))
      .sort(),
  ).toEqual(
    of('CreateHarnessRequest')
      .filter((name) => !beside.has(name))
      .sort(),
  );
});
