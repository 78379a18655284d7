import { type Plane, type PlaneModel, type ShapeDef, shapeIn } from '../model.ts';
import { patternInputLimit, textRule } from '../patterns.ts';
import { lazily } from './lazily.ts';
import { report, reportAt, type Walk } from './walk.ts';

/** Reports every constraint of a shape that a typed value breaks. */
export type Checker = (value: unknown, walk: Walk) => void;

const nothing: Checker = () => {};

const plural = (count: number, noun: string): string =>
  count === 1 ? `1 ${noun}` : `${count} ${noun.replace(/y$/, 'ie')}s`;

/** Checks a size against min and max; true when it is within. */
function sizeChecker({ min, max }: ShapeDef, noun: string): (size: number, walk: Walk) => boolean {
  return (size, walk) => {
    if (min !== undefined && size < min) report(walk, `must have at least ${plural(min, noun)}, not ${size}`);
    else if (max !== undefined && size > max) report(walk, `must have at most ${plural(max, noun)}, not ${size}`);
    else return true;
    return false;
  };
}

/** Characters as the model counts them: code points, not UTF-16 units. */
function codePoints(text: string): number {
  let pairs = 0;
  for (let i = 0; i < text.length - 1; i++) {
    if ((text.charCodeAt(i) & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) pairs++;
  }
  return text.length - pairs;
}

function text(plane: Plane, name: string, shape: ShapeDef): Checker {
  const size = sizeChecker(shape, 'character');
  const pattern = textRule(plane, name, shape);
  const values = shape.enum === undefined ? undefined : new Set(shape.enum);
  const limit = shape.max ?? patternInputLimit;
  const bounded = shape.min !== undefined || shape.max !== undefined;
  return (value, walk) => {
    if (typeof value !== 'string') return;
    if (bounded && !size(codePoints(value), walk)) return;
    if (values !== undefined && !values.has(value)) {
      report(walk, `must be one of ${[...values].join(', ')}`);
    } else if (pattern !== undefined && value.length > limit * 2) {
      report(walk, `must have at most ${plural(limit, 'character')}`);
    } else if (pattern !== undefined && !pattern.test(value)) {
      report(walk, pattern.rule);
    }
  };
}

function number({ min, max }: ShapeDef): Checker {
  if (min === undefined && max === undefined) return nothing;
  const rule =
    min === undefined
      ? `must be at most ${max}`
      : max === undefined
        ? `must be at least ${min}`
        : `must be from ${min} to ${max}`;
  // Written so that NaN, which is neither below nor above, fails.
  return (value, walk) => {
    if (typeof value !== 'number') return;
    const within = (min === undefined || value >= min) && (max === undefined || value <= max);
    if (!within) report(walk, rule);
  };
}

/** Compiles checkers for the shapes of one plane, from min, max, pattern, enum, required and union. */
export function checkers(plane: Plane, model: PlaneModel): (name: string) => Checker {
  const checkerOf = lazily((name: string) => build(name, shapeIn(model, name)));

  function build(name: string, shape: ShapeDef): Checker {
    switch (shape.type) {
      case 'structure':
        return shape.document || shape.eventstream ? nothing : structure(shape);
      case 'list':
        return list(shape);
      case 'map':
        return map(shape);
      case 'string':
        return text(plane, name, shape);
      case 'blob':
        return blob(shape);
      case 'boolean':
      case 'timestamp':
        return nothing;
      default:
        return number(shape);
    }
  }

  function structure(shape: ShapeDef): Checker {
    const members = Object.entries(shape.members ?? {}).map(([name, member]) => ({
      name,
      check: checkerOf(member.shape),
    }));
    const required = shape.required ?? [];
    const choices = members.map((m) => m.name).join(', ');
    return (value, walk) => {
      if (typeof value !== 'object' || value === null) return;
      const source = value as Record<string, unknown>;
      for (const name of required) if (source[name] === undefined) reportAt(walk, name, 'is required');
      let present = 0;
      for (const { name, check } of members) {
        const member = source[name];
        if (member === undefined) continue;
        present++;
        walk.path.push(name);
        check(member, walk);
        walk.path.pop();
      }
      if (shape.union && present !== 1) report(walk, `must have exactly one of ${choices}, not ${present}`);
    };
  }

  function list(shape: ShapeDef): Checker {
    const size = sizeChecker(shape, 'element');
    const check = checkerOf(shape.member?.shape ?? '');
    return (value, walk) => {
      // A list of a length that is not allowed is not looked into: it may be huge.
      if (!Array.isArray(value) || !size(value.length, walk)) return;
      for (const [index, item] of value.entries()) {
        walk.path.push(index);
        check(item, walk);
        walk.path.pop();
      }
    };
  }

  function map(shape: ShapeDef): Checker {
    const size = sizeChecker(shape, 'entry');
    const checkKey = checkerOf(shape.key?.shape ?? '');
    const check = checkerOf(shape.value?.shape ?? '');
    return (value, walk) => {
      if (typeof value !== 'object' || value === null) return;
      const entries = Object.entries(value);
      if (!size(entries.length, walk)) return;
      for (const [key, item] of entries) {
        walk.path.push(key);
        checkKey(key, walk);
        check(item, walk);
        walk.path.pop();
      }
    };
  }

  return checkerOf;
}

function blob(shape: ShapeDef): Checker {
  const size = sizeChecker(shape, 'byte');
  return (value, walk) => {
    if (value instanceof Uint8Array) size(value.byteLength, walk);
  };
}
