import fc from 'fast-check';
import { type MemberDef, type PlaneModel, type ShapeDef, shapeIn } from '../src/model.ts';
import { patternTexts } from './pattern-texts.ts';

/** How a text travels, which decides what characters it may have. */
type Carrier = 'body' | 'header' | 'label' | 'query';

/** Past this depth only what is required is generated, and the shallowest choice of a union. */
const deepest = 5;

const headerSafe = fc.string({ unit: fc.constantFrom(...'abcXYZ019 -_.:/=;@'), minLength: 1, maxLength: 40 });

/** Any code point, control characters included, and often those that some encoding on the way treats specially. */
const anyCharacter = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  fc.constantFrom(...' +%&=/:?#"\\,;aZ09.~\n\téß€😀'),
);

const anyText = (minLength: number, maxLength: number): fc.Arbitrary<string> =>
  fc.string({ unit: anyCharacter, minLength, maxLength });

/** A JSON value as documents hold it; -0 and whole numbers past 2^53 do not survive JSON in every client. */
export const jsonDocument: fc.Arbitrary<unknown> = fc.dictionary(
  fc.string({ maxLength: 8 }).filter((key) => key !== '__proto__'),
  fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      fc.string({ unit: 'binary', maxLength: 12 }),
      fc.constantFrom(true, false, null),
      fc.integer(),
      fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e9, max: 1e9 }).map(noMinusZero),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(
        fc.string({ maxLength: 8 }).filter((key) => key !== '__proto__'),
        tie('value'),
        { maxKeys: 3 },
      ),
    ),
  })).value,
  { maxKeys: 4 },
);

function noMinusZero(value: number): number {
  return value === 0 ? 0 : value;
}

/** Values of the shapes of one plane that satisfy every constraint of the model, by shape name. */
export function shapeArbitraries(plane: PlaneModel): (shape: string) => fc.Arbitrary<unknown> {
  const cache = new Map<string, fc.Arbitrary<unknown>>();
  const heights = unionHeights(plane);

  function value(name: string, carrier: Carrier, depth: number): fc.Arbitrary<unknown> {
    const key = `${name} ${carrier} ${Math.min(depth, deepest)}`;
    const known = cache.get(key);
    if (known !== undefined) return known;
    const made = build(shapeIn(plane, name), carrier, depth);
    cache.set(key, made);
    return made;
  }

  function build(shape: ShapeDef, carrier: Carrier, depth: number): fc.Arbitrary<unknown> {
    switch (shape.type) {
      case 'structure':
        if (shape.document) return jsonDocument;
        return shape.union ? union(shape, depth) : structure(shape, depth);
      case 'list': {
        // An empty list cannot be told from none in a query string.
        const { max = 3 } = shape;
        const min = Math.max(shape.min ?? 0, carrier === 'query' ? 1 : 0);
        const item = value(shape.member?.shape ?? '', carrier, depth + 1);
        const most = depth >= deepest ? min : Math.max(min, Math.min(max, 3));
        return fc.array(item, { minLength: min, maxLength: most });
      }
      case 'map': {
        const { min = 0, max = 3 } = shape;
        const keys = value(shape.key?.shape ?? '', carrier, depth + 1).map(String);
        const most = depth >= deepest ? min : Math.max(min, Math.min(max, 3));
        return fc.dictionary(
          keys.filter((k) => k !== '__proto__'),
          value(shape.value?.shape ?? '', carrier, depth + 1),
          { minKeys: min, maxKeys: most },
        );
      }
      case 'string':
        return text(shape, carrier);
      case 'boolean':
        return fc.boolean();
      case 'integer':
        return fc.integer({ min: shape.min ?? -(2 ** 31), max: shape.max ?? 2 ** 31 - 1 });
      case 'long':
        return fc.integer({ min: shape.min ?? Number.MIN_SAFE_INTEGER, max: shape.max ?? Number.MAX_SAFE_INTEGER });
      case 'float':
      case 'double': {
        const bounded = shape.min !== undefined || shape.max !== undefined;
        return fc
          .double({ min: shape.min ?? -1e300, max: shape.max ?? 1e300, noNaN: bounded, noDefaultInfinity: bounded })
          .filter((n) => !Number.isInteger(n) || Number.isSafeInteger(n))
          .map(noMinusZero);
      }
      case 'blob':
        return fc.uint8Array({ minLength: shape.min ?? 0, maxLength: Math.min(shape.max ?? 64, 64) });
      case 'timestamp':
        return fc.date({ min: new Date('1970-01-01'), max: new Date('2199-12-31'), noInvalidDate: true });
    }
  }

  function text(shape: ShapeDef, carrier: Carrier): fc.Arbitrary<unknown> {
    if (shape.enum !== undefined) return fc.constantFrom(...shape.enum);
    const { min = 0, max = min + 24 } = shape;
    if (shape.pattern !== undefined) {
      const usable = patternTexts(shape).filter((t) => carrier !== 'label' || t !== '');
      return fc.constantFrom(...usable);
    }
    if (carrier === 'header') {
      return headerSafe.map((t) => t.trim().padEnd(Math.max(min, 1), 'h').slice(0, max));
    }
    return anyText(carrier === 'label' ? Math.max(1, min) : min, Math.min(max, min + 24));
  }

  function memberArbitrary(member: MemberDef, depth: number): fc.Arbitrary<unknown> {
    const carriers: Partial<Record<string, Carrier>> = { header: 'header', uri: 'label', querystring: 'query' };
    return value(member.shape, carriers[member.location ?? ''] ?? 'body', depth + 1);
  }

  function structure(shape: ShapeDef, depth: number): fc.Arbitrary<unknown> {
    const wanted = Object.entries(shape.members ?? {}).filter(
      ([name, member]) =>
        member.location !== 'statusCode' &&
        !shapeIn(plane, member.shape).eventstream &&
        (depth < deepest || shape.required?.includes(name)),
    );
    const model = Object.fromEntries(wanted.map(([name, member]) => [name, memberArbitrary(member, depth)]));
    // SDKs fill in an idempotency token and a content type that are missing, so they are always there to be compared.
    const filledIn = (member: MemberDef): boolean =>
      member.idempotencyToken === true || member.locationName === 'Content-Type';
    const always = wanted.filter(([name, member]) => filledIn(member) || shape.required?.includes(name));
    return fc.record(model, { requiredKeys: always.map(([name]) => name) });
  }

  function union(shape: ShapeDef, depth: number): fc.Arbitrary<unknown> {
    const members = Object.entries(shape.members ?? {});
    const lowest = Math.min(...members.map(([, m]) => heights(m.shape)));
    const choices = members.filter(([, m]) => depth < deepest || heights(m.shape) === lowest);
    return fc.oneof(...choices.map(([name, m]) => memberArbitrary(m, depth).map((chosen) => ({ [name]: chosen }))));
  }

  return (name) => value(name, 'body', 0);
}

/** How deep a value of a shape must be at least, so that generation can take the way that ends. */
function unionHeights(plane: PlaneModel): (name: string) => number {
  const known = new Map<string, number>();
  const height = (name: string): number => {
    const done = known.get(name);
    if (done !== undefined) return done;
    known.set(name, Number.POSITIVE_INFINITY);
    const shape = shapeIn(plane, name);
    const needed = Object.entries(shape.members ?? {})
      .filter(([member]) => shape.union || shape.required?.includes(member))
      .map(([, member]) => height(member.shape));
    if (shape.type === 'list' && (shape.min ?? 0) > 0) needed.push(height(shape.member?.shape ?? ''));
    const inner = needed.length === 0 ? 0 : shape.union ? Math.min(...needed) : Math.max(...needed);
    known.set(name, inner + 1);
    return inner + 1;
  };
  return height;
}
