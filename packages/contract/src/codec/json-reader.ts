import { type MemberDef, type PlaneModel, type ShapeDef, shapeIn } from '../model.ts';
import { readDocument } from './documents.ts';
import { lazily } from './lazily.ts';
import { parseTimestamp } from './timestamps.ts';
import { reportUnknownMembers } from './unknown-members.ts';
import { maxDepth, report, reportAt, type Walk } from './walk.ts';

/** Turns a parsed JSON value into the typed value of a shape; what does not fit is reported and read as undefined. */
export type Reader = (value: unknown, walk: Walk) => unknown;

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What to call a JSON value in a message, without showing it: it may be a secret. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'a list' : typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function readText(value: unknown, walk: Walk): string | undefined {
  if (typeof value !== 'string') report(walk, `must be a string, not ${kindOf(value)}`);
  else if (!value.isWellFormed()) report(walk, 'must be well-formed Unicode');
  else return value;
  return undefined;
}

function readBoolean(value: unknown, walk: Walk): boolean | undefined {
  if (typeof value === 'boolean') return value;
  report(walk, `must be true or false, not ${kindOf(value)}`);
  return undefined;
}

/** Whole numbers: 32 bits for `integer`; for `long` as far as a JSON number is exact. */
function integerReader(limit: 'integer' | 'long'): Reader {
  const [low, high] =
    limit === 'integer' ? [-(2 ** 31), 2 ** 31 - 1] : [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];
  return (value, walk) => {
    if (typeof value !== 'number') report(walk, `must be a whole number, not ${kindOf(value)}`);
    else if (!Number.isInteger(value)) report(walk, 'must be a whole number');
    else if (value < low || value > high) report(walk, `must be from ${low} to ${high}`);
    else return value;
    return undefined;
  };
}

const namedFloats: Record<string, number> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '-Infinity': Number.NEGATIVE_INFINITY,
};

function readFloat(value: unknown, walk: Walk): number | undefined {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (typeof value === 'string' && Object.hasOwn(namedFloats, value)) return namedFloats[value];
  report(walk, typeof value === 'number' ? 'is too large' : `must be a number, not ${kindOf(value)}`);
  return undefined;
}

function readBlob(value: unknown, walk: Walk): Uint8Array | undefined {
  if (typeof value !== 'string') {
    report(walk, `must be base64 text, not ${kindOf(value)}`);
    return undefined;
  }
  const bytes = decodeBase64(value);
  if (bytes === undefined) report(walk, 'must be base64 text');
  return bytes;
}

/** The bytes of base64 text with its padding; undefined for any other text. */
export function decodeBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0) return undefined;
  const bytes = Buffer.from(text, 'base64');
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  // The decoder passes over what is no base64, so its result is shorter then; the alphabet of URLs it takes as well. To match a
  // pattern first would take ten times as long as all of this.
  const whole = bytes.length === (text.length / 4) * 3 - padding;
  return whole && !text.includes('-') && !text.includes('_') ? bytes : undefined;
}

function readTimestamp(value: unknown, walk: Walk): Date | undefined {
  const date = parseTimestamp(value);
  if (date === undefined) report(walk, 'must be a timestamp: seconds since 1970, or text such as 2026-01-31T12:00:00Z');
  return date;
}

/** Compiles readers for the shapes of one plane. */
export function jsonReaders(plane: PlaneModel): (name: string) => Reader {
  const readerOf = lazily((name) => build(shapeIn(plane, name)));

  function build(shape: ShapeDef): Reader {
    switch (shape.type) {
      case 'structure':
        return shape.document ? readDocument : structure(bodyMembers(shape), shape.union === true);
      case 'list':
        return list(readerOf(shape.member?.shape ?? ''));
      case 'map':
        return map(readerOf(shape.value?.shape ?? ''));
      case 'string':
        return readText;
      case 'boolean':
        return readBoolean;
      case 'integer':
      case 'long':
        return integerReader(shape.type);
      case 'float':
      case 'double':
        return readFloat;
      case 'blob':
        return readBlob;
      case 'timestamp':
        return readTimestamp;
    }
  }

  function bodyMembers(shape: ShapeDef): { name: string; wire: string; read: Reader }[] {
    const inBody = ([, member]: [string, MemberDef]): boolean => member.location === undefined;
    return Object.entries(shape.members ?? {})
      .filter(inBody)
      .map(([name, member]) => ({
        name,
        wire: member.locationName ?? name,
        read: member.jsonvalue ? jsonText(readDocument) : readerOf(member.shape),
      }));
  }

  return readerOf;
}

/** A `jsonvalue` member: JSON inside a JSON string. */
function jsonText(read: Reader): Reader {
  return (value, walk) => {
    const text = readText(value, walk);
    if (text === undefined) return undefined;
    try {
      return read(JSON.parse(text), walk);
    } catch {
      report(walk, 'must be a string that holds JSON');
      return undefined;
    }
  };
}

function structure(members: { name: string; wire: string; read: Reader }[], union: boolean): Reader {
  const known = new Set(members.map((m) => m.wire));
  return (value, walk) => {
    if (!isRecord(value)) {
      report(walk, `must be an object, not ${kindOf(value)}`);
      return undefined;
    }
    if (walk.path.length >= maxDepth) {
      report(walk, `is nested deeper than ${maxDepth} levels`);
      return undefined;
    }
    const result: Record<string, unknown> = {};
    // Only members that the model knows are read: others, `__proto__` among them, never get further than here.
    let met = 0;
    for (const { name, wire, read } of members) {
      const member = Object.hasOwn(value, wire) ? value[wire] : undefined;
      if (member === undefined) continue;
      met += 1;
      if (member === null) continue;
      walk.path.push(name);
      const typed = read(member, walk);
      walk.path.pop();
      if (typed !== undefined) result[name] = typed;
    }
    if (union) reportUnknownChoice(value, known, walk);
    else if (Object.keys(value).length > met) reportUnknownMembers(value, known, walk);
    return result;
  };
}

/** In a union, a member that is not known means that the caller chose something this platform does not have. */
function reportUnknownChoice(value: Record<string, unknown>, known: ReadonlySet<string>, walk: Walk): void {
  for (const key of Object.keys(value)) {
    if (known.has(key) || key === '__type' || value[key] === null) continue;
    report(walk, `must have one of ${[...known].join(', ')}, not ${JSON.stringify(key.slice(0, 60))}`);
    return;
  }
}

function list(read: Reader): Reader {
  return (value, walk) => {
    if (!Array.isArray(value)) {
      report(walk, `must be a list, not ${kindOf(value)}`);
      return undefined;
    }
    return value.map((item: unknown, index) => {
      walk.path.push(index);
      const typed = read(item, walk);
      walk.path.pop();
      return typed;
    });
  };
}

function map(read: Reader): Reader {
  return (value, walk) => {
    if (!isRecord(value)) {
      report(walk, `must be an object, not ${kindOf(value)}`);
      return undefined;
    }
    const result: Record<string, unknown> = {};
    for (const [key, item] of Object.entries(value)) {
      if (key === '__proto__') {
        reportAt(walk, key, 'is not allowed as a key');
        continue;
      }
      if (item === null) continue;
      if (!key.isWellFormed()) {
        report(walk, 'has a key that is not well-formed Unicode');
        continue;
      }
      walk.path.push(key);
      const typed = read(item, walk);
      walk.path.pop();
      if (typed !== undefined) result[key] = typed;
    }
    return result;
  };
}
