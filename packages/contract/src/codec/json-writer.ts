import { type MemberDef, type PlaneModel, type ShapeDef, shapeIn, type TimestampFormat } from '../model.ts';
import { lazily } from './lazily.ts';
import { formatTimestamp } from './timestamps.ts';

/** Turns the typed value of a shape into what `JSON.stringify` then prints. Members that the model lacks are left out. */
export type Writer = (value: unknown) => unknown;

const asIs: Writer = (value) => value;

/** JSON has no NaN or infinities; the wire writes them as text. */
const writeFloat: Writer = (value) => (typeof value === 'number' && !Number.isFinite(value) ? String(value) : value);

const writeBlob: Writer = (value) => {
  if (!(value instanceof Uint8Array)) throw new TypeError('A blob must be a Uint8Array');
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
};

function timestampWriter(format: TimestampFormat): Writer {
  return (value) => {
    if (!(value instanceof Date)) throw new TypeError('A timestamp must be a Date');
    return formatTimestamp(value, format);
  };
}

/** Compiles writers for the shapes of one plane; `write(shape)(value)` throws TypeError when a value has the wrong type. */
export function jsonWriters(plane: PlaneModel): (name: string) => Writer {
  const writerOf = lazily((name: string) => build(shapeIn(plane, name)));

  function build(shape: ShapeDef): Writer {
    switch (shape.type) {
      case 'structure':
        return shape.document ? asIs : structure(shape);
      case 'list':
        return list(writerOf(shape.member?.shape ?? ''));
      case 'map':
        return map(writerOf(shape.value?.shape ?? ''));
      case 'float':
      case 'double':
        return writeFloat;
      case 'blob':
        return writeBlob;
      case 'timestamp':
        return timestampWriter(shape.timestampFormat ?? 'unixTimestamp');
      default:
        return asIs;
    }
  }

  function memberWriter(member: MemberDef): Writer {
    if (member.jsonvalue) return (value) => JSON.stringify(value);
    if (member.timestampFormat !== undefined && shapeIn(plane, member.shape).type === 'timestamp') {
      return timestampWriter(member.timestampFormat);
    }
    return writerOf(member.shape);
  }

  function structure(shape: ShapeDef): Writer {
    const members = Object.entries(shape.members ?? {})
      .filter(([, member]) => member.location === undefined)
      .map(([name, member]) => ({ name, wire: member.locationName ?? name, write: memberWriter(member) }));
    return (value) => {
      if (typeof value !== 'object' || value === null) throw new TypeError('A structure must be an object');
      const source = value as Record<string, unknown>;
      const result: Record<string, unknown> = {};
      for (const { name, wire, write } of members) {
        const member = source[name];
        if (member !== undefined && member !== null) result[wire] = write(member);
      }
      return result;
    };
  }

  return writerOf;
}

function list(write: Writer): Writer {
  return (value) => {
    if (!Array.isArray(value)) throw new TypeError('A list must be an array');
    return value.map(write);
  };
}

function map(write: Writer): Writer {
  return (value) => {
    if (typeof value !== 'object' || value === null) throw new TypeError('A map must be an object');
    const entries = Object.entries(value).filter(([, item]) => item !== undefined && item !== null);
    return Object.fromEntries(entries.map(([key, item]) => [key, write(item)]));
  };
}
