/** Reads a value out of JSON that the platform has stored. Throws `StoredShapeError` for one of another shape. */
export type Shape<T> = (value: unknown, at: string) => T;

/** What is stored is not what this server writes; says where in it, and nothing of the value. */
export class StoredShapeError extends Error {
  override name = 'StoredShapeError';

  constructor(at: string, wanted: string) {
    super(`what is stored is damaged, or of another version of the platform: ${at || 'it'} is not ${wanted}`);
  }
}

export const text: Shape<string> = (value, at) => {
  if (typeof value !== 'string') throw new StoredShapeError(at, 'a text');
  return value;
};

export const number: Shape<number> = (value, at) => {
  if (typeof value !== 'number') throw new StoredShapeError(at, 'a number');
  return value;
};

export const flag: Shape<boolean> = (value, at) => {
  if (typeof value !== 'boolean') throw new StoredShapeError(at, 'true or false');
  return value;
};

export function oneOf<const T extends string | boolean>(...words: T[]): Shape<T> {
  return (value, at) => {
    const found = words.find((word) => word === value);
    if (found === undefined) throw new StoredShapeError(at, `one of ${words.join(', ')}`);
    return found;
  };
}

export function list<T>(shape: Shape<T>): Shape<T[]> {
  return (value, at) => {
    if (!Array.isArray(value)) throw new StoredShapeError(at, 'a list');
    return value.map((item, index) => shape(item, `${at}[${index}]`));
  };
}

/** A list of so many, each of a shape of its own; of what may be missing at its end, `orAbsent`. */
export function tuple<T extends unknown[]>(...shapes: { [At in keyof T]: Shape<T[At]> }): Shape<T> {
  const items = list((item) => item);
  return (value, at) => {
    const found = items(value, at);
    return shapes.map((shape: Shape<unknown>, index) => shape(found[index], `${at}[${index}]`)) as T;
  };
}

/** An object of any names, all with values of one shape. */
export function record<T>(shape: Shape<T>): Shape<Record<string, T>> {
  return (value, at) => {
    const entries = Object.entries(members(value, at));
    return Object.fromEntries(entries.map(([name, one]) => [name, shape(one, `${at}.${name}`)]));
  };
}

/** `undefined` for what is not there. */
export function orAbsent<T>(shape: Shape<T>): Shape<T | undefined> {
  return (value, at) => (value === undefined ? undefined : shape(value, at));
}

/** `null` for what is none. */
export function orNull<T>(shape: Shape<T>): Shape<T | null> {
  return (value, at) => (value === null ? null : shape(value, at));
}

/** Shapes of the members of `T`. */
type Members<T> = { [Name in keyof T]: Shape<T[Name]> };

/** An object with these members, and with the second ones where they are there. Others stay in it: a newer server may have written them. */
export function object<T extends object, More extends object = object>(
  needed: Members<T>,
  more?: Members<More>,
): Shape<T & Partial<More>> {
  return (value, at) => {
    const found: Record<string, unknown> = { ...members(value, at) };
    const read = (name: string, shape: unknown): void => {
      found[name] = (shape as Shape<unknown>)(found[name], at === '' ? name : `${at}.${name}`);
    };
    for (const [name, shape] of Object.entries(needed)) read(name, shape);
    for (const [name, shape] of Object.entries(more ?? {})) if (found[name] !== undefined) read(name, shape);
    return found as T & Partial<More>;
  };
}

/** An object of the wire's: the contract's codec has read it when it came, and its members are the vendor's to name. */
export function wire<T extends object>(): Shape<T> {
  return (value, at) => members(value, at) as T;
}

/** A word of one of the wire's enumerations. */
export function word<T extends string>(): Shape<T> {
  return (value, at) => text(value, at) as T;
}

function members(value: unknown, at: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new StoredShapeError(at, 'an object');
  return value as Record<string, unknown>;
}

/** How data is stored: read by `parse`, and marked with its layout when it is written. */
export interface Stored<T> {
  /** 1 is written without a mark. */
  layout: number;
  /** Throws `StoredShapeError`, also for a layout that is newer than this server. */
  parse(data: unknown): T;
}

/** Data of an older layout becomes one of the next. */
export type Upgrade = (former: Record<string, unknown>) => unknown;

/** The member that has the layout, of those that are not the first. */
const MARK = '$layout';

/** Data of this shape. `upgrades` lead from the first layout to the one of the shape, one step each; a step stays as it is for ever. */
export function stored<T>(shape: Shape<T>, upgrades: readonly Upgrade[] = []): Stored<T> {
  const layout = upgrades.length + 1;
  return {
    layout,
    parse(data) {
      // What is no object has the first layout, as all did before there was a mark.
      if (typeof data !== 'object' || data === null || !(MARK in data)) return shape(upgraded(data, 1), '');
      const { [MARK]: of, ...rest } = data;
      if (typeof of !== 'number' || of > layout) throw new StoredShapeError('its layout', `at most ${layout}`);
      return shape(upgraded(rest, of), '');
    },
  };

  function upgraded(data: unknown, from: number): unknown {
    return upgrades.slice(from - 1).reduce((former, upgrade) => upgrade(members(former, '')), data);
  }
}

/** As it goes into the database. */
export function marked(data: unknown, layout: number): unknown {
  return layout === 1 ? data : { ...members(data, ''), [MARK]: layout };
}

/** The same of JSON as text. Throws SyntaxError for what is none. */
export function storedText<T>(shape: Shape<T>, json: string): T {
  return shape(JSON.parse(json), '');
}
