import { pathName } from '../src/codec/walk.ts';
import { type MemberDef, type PlaneModel, type ShapeDef, shapeIn } from '../src/model.ts';

type Path = (string | number)[];

/** One way to break one rule in a valid value: what to put where, and the field that has to be named for it. */
export interface Violation {
  rule: string;
  at: Path;
  replacement: unknown;
  field: string;
}

/** Every rule that a change at one place of a valid input would break. */
export function violations(model: PlaneModel, shapeName: string, value: unknown): Violation[] {
  const found: Violation[] = [];

  function add(rule: string, at: Path, replacement: unknown, field: Path = at): void {
    found.push({ rule, at, replacement, field: pathName(field) });
  }

  function visit(name: string, item: unknown, at: Path, member: MemberDef | undefined): void {
    const shape = shapeIn(model, name);
    if (shape.document) return;
    const inText = member?.location !== undefined;
    if (shape.type === 'string') ofString(shape, String(item), at, inText);
    else if (shape.type === 'boolean') add('type', at, inText ? 'yes' : 'true');
    else if (shape.type === 'structure') ofStructure(shape, item as Record<string, unknown>, at);
    else if (shape.type === 'list') ofList(shape, item as unknown[], at, member);
    else if (shape.type === 'map') ofMap(shape, item as Record<string, unknown>, at);
    else if (shape.type !== 'blob' && shape.type !== 'timestamp') ofNumber(shape, at);
  }

  function ofMap(shape: ShapeDef, item: Record<string, unknown>, at: Path): void {
    for (const [key, entry] of Object.entries(item)) visit(shape.value?.shape ?? '', entry, [...at, key], undefined);
  }

  function ofString(shape: ShapeDef, text: string, at: Path, inText: boolean): void {
    if (!inText) add('type', at, 7);
    // An empty label leads to no operation at all, and very long text is not made for the sake of speed.
    if (shape.min !== undefined && shape.min > (inText ? 1 : 0))
      add('min', at, [...text].slice(0, shape.min - 1).join(''));
    if (shape.max !== undefined && shape.max <= 100_000) add('max', at, 'a'.repeat(shape.max + 1));
    if (shape.enum !== undefined) add('enum', at, 'NO_SUCH_VALUE');
    if (shape.pattern !== undefined && !new RegExp(`^(?:${shape.pattern})$`, 'u').test('\u0001'))
      add('pattern', at, '\u0001');
  }

  function ofNumber(shape: ShapeDef, at: Path): void {
    add('type', at, 'seven');
    if (shape.type === 'integer') add('whole', at, 1.5);
    if (shape.type === 'integer') add('range', at, 2 ** 31);
    if (shape.min !== undefined) add('min', at, shape.min - 1);
    if (shape.max !== undefined) add('max', at, shape.max + 1);
  }

  function ofStructure(shape: ShapeDef, item: Record<string, unknown>, at: Path): void {
    const members = Object.entries(shape.members ?? {});
    for (const required of shape.required ?? []) {
      if (item[required] !== undefined) add('required', [...at, required], undefined);
    }
    if (shape.union) {
      add('union none', at, {});
      const [present] = Object.keys(item);
      const other = members.find(([name, m]) => name !== present && shapeIn(model, m.shape).type === 'structure');
      if (other !== undefined) add('union two', at, { ...item, [other[0]]: {} });
    }
    for (const [name, member] of members)
      if (item[name] !== undefined) visit(member.shape, item[name], [...at, name], member);
  }

  function ofList(shape: ShapeDef, items: unknown[], at: Path, member: MemberDef | undefined): void {
    if (shape.max !== undefined && shape.max < 200 && items.length > 0) {
      add(
        'max',
        at,
        Array.from({ length: shape.max + 1 }, () => items[0]),
      );
    }
    if (shape.min !== undefined && shape.min > 0 && member?.location === undefined)
      add('min', at, items.slice(0, shape.min - 1));
    for (const [index, item] of items.entries()) visit(shape.member?.shape ?? '', item, [...at, index], member);
  }

  visit(shapeName, value, [], undefined);
  return found;
}

/** A copy of `value` with the violation in it. */
export function violated(value: unknown, { at, replacement }: Pick<Violation, 'at' | 'replacement'>): unknown {
  const [step, ...rest] = at;
  if (step === undefined) return replacement;
  if (Array.isArray(value))
    return value.map((item, i) => (i === step ? violated(item, { at: rest, replacement }) : item));
  const source = value as Record<string, unknown>;
  return { ...source, [step]: violated(source[step], { at: rest, replacement }) };
}
