import { isCidr } from '../kernel/is-cidr.ts';

/** What defaults may depend on: the machine that the platform runs on. */
export interface Machine {
  cpus: number;
  memoryBytes: number;
  /** Files that a process started here may be allowed to hold open; without more privilege it cannot be raised. */
  openFiles: number;
}

/** One configurable value: what it means, what it is when nobody sets it, and how it is read. */
export interface Setting<T> {
  kind: 'setting';
  /** One sentence for `--help` and the docs. */
  about: string;
  /** What a value looks like: `seconds`, `bytes`, `CIDR[,CIDR]`. */
  unit: string;
  default: T | ((machine: Machine) => T);
  /** Stands for the default in the docs where it depends on the machine. */
  defaultText?: string;
  /** Command-line name instead of the one made from the key. */
  flag?: string;
  /** Environment and file only: a command line can be read by every user of the machine. */
  secret?: boolean;
  /** Needs no value on the command line; `--no-<flag>` turns it off. */
  switch?: boolean;
  /** Command line and environment only. */
  notInFile?: boolean;
  /** Decodes text (flag, environment) or JSON (file); throws an Error whose message completes `<name> …`. */
  read(value: unknown): T;
}

/** Groups of settings nest; the path of a setting is its name everywhere. */
export interface SettingTree {
  [key: string]: Setting<unknown> | SettingTree;
}

export type ValuesOf<T> = { [K in keyof T]: T[K] extends Setting<infer V> ? V : ValuesOf<T[K]> };

type Options<T> = Pick<Setting<T>, 'about' | 'default'> & Partial<Omit<Setting<T>, 'kind' | 'read'>>;

/** A setting whose values are read in a way of its own. */
export const setting = <T>(unit: string, options: Options<T>, read: (value: unknown) => T): Setting<T> => ({
  unit,
  ...options,
  kind: 'setting',
  read,
});

const shown = (value: unknown): string => JSON.stringify(value) ?? String(value);

function text(value: unknown, expected: string): string {
  if (typeof value === 'string' && value.trim() !== '') return value.trim();
  // What is none may hold a secret all the same, such as an object of URLs: it is not repeated.
  throw new Error(`must be ${expected}, not ${typeof value === 'string' ? 'empty' : `of type ${typeof value}`}`);
}

function numeric(value: unknown, factor: (suffix: string) => number | undefined, expected: string): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  const match = typeof value === 'string' ? /^(-?\d+(?:\.\d+)?)\s*([a-zA-Z]*)$/.exec(value.trim()) : null;
  const scale = match === null ? undefined : factor(match[2] ?? '');
  if (match === null || scale === undefined) throw new Error(`must be ${expected}, not ${shown(value)}`);
  return Number(match[1]) * scale;
}

interface Range {
  min: number;
  max: number;
}

function within(value: number, { min, max }: Range, unit: string): number {
  if (value < min || value > max) throw new Error(`must be from ${min} to ${max}${unit}, not ${value}`);
  return value;
}

const plain = (suffix: string): number | undefined => (suffix === '' ? 1 : undefined);
const durations: Record<string, number> = { '': 1, ms: 0.001, s: 1, m: 60, h: 3600 };
const sizes: Record<string, number> = {
  '': 1,
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
};

/** A whole number within a range. */
export const integer = (options: Options<number> & Range): Setting<number> =>
  setting('number', options, (value) => {
    const number = numeric(value, plain, 'a whole number');
    if (!Number.isSafeInteger(number)) throw new Error(`must be a whole number, not ${shown(value)}`);
    return within(number, options, '');
  });

/** A number within a range, fractions allowed. */
export const decimal = (options: Options<number> & Range): Setting<number> =>
  setting('number', options, (value) => within(numeric(value, plain, 'a number'), options, ''));

/** A duration in seconds; text may carry `ms`, `s`, `m` or `h`. */
export const seconds = (options: Options<number> & Range): Setting<number> =>
  setting('seconds', options, (value) =>
    within(
      numeric(value, (suffix) => durations[suffix], 'a number of seconds such as 90, "90s", "15m" or "8h"'),
      options,
      ' seconds',
    ),
  );

/** A size in bytes; text may carry `KB`, `MB`, `GB` (powers of 1000) or `KiB`, `MiB`, `GiB` (powers of 1024). */
export const bytes = (options: Options<number> & Range): Setting<number> =>
  setting('bytes', options, (value) => size(value, options));

/** Like `bytes`, and absent when nobody sets it. */
export const optionalBytes = (options: Omit<Options<number>, 'default'> & Range): Setting<number | undefined> =>
  setting<number | undefined>('bytes', { ...options, default: undefined }, (value) => size(value, options));

function size(value: unknown, range: Range): number {
  const expected = 'a number of bytes such as 1048576, "512MiB" or "2GB"';
  return within(Math.floor(numeric(value, (suffix) => sizes[suffix], expected)), range, ' bytes');
}

/** One of a few words. */
export const choice = <const C extends string>(choices: readonly C[], options: Options<NoInfer<C>>): Setting<C> =>
  setting(choices.join('|'), options, (value) => {
    const found = choices.find((one) => one === value);
    if (found === undefined) throw new Error(`must be one of ${choices.join(', ')}, not ${shown(value)}`);
    return found;
  });

/** Yes or no. */
export const onOff = (options: Options<boolean>): Setting<boolean> =>
  setting('true|false', { switch: true, ...options }, (value) => {
    if (typeof value === 'boolean') return value;
    if (value === 'true' || value === '1') return true;
    if (value === 'false' || value === '0') return false;
    throw new Error(`must be true or false, not ${shown(value)}`);
  });

/** Text that `pattern` accepts, `expected` says what that is. */
export const word = (options: Options<string> & { pattern: RegExp; expected: string }): Setting<string> =>
  setting('text', options, (value) => matching(value, options));

/** Like `word`, and absent when nobody sets it. */
export const optionalWord = (
  options: Omit<Options<string>, 'default'> & { pattern: RegExp; expected: string },
): Setting<string | undefined> =>
  setting<string | undefined>('text', { ...options, default: undefined }, (value) => matching(value, options));

function matching(value: unknown, { pattern, expected }: { pattern: RegExp; expected: string }): string {
  const given = text(value, expected);
  // The value may be a secret (a password in a database URL): it is not repeated.
  if (!pattern.test(given)) throw new Error(`must be ${expected}`);
  return given;
}

/** An http or https URL that the operator has the platform call, absent when nobody sets it. Not with a password: it would be in every log. */
export const optionalUrl = (
  options: Omit<Options<string>, 'default'> & { expected: string },
): Setting<string | undefined> =>
  setting<string | undefined>('URL', { ...options, default: undefined }, (value) =>
    checkedUrl(text(value, options.expected), options.expected),
  );

/** URLs by the ARNs of topics, `ARN=URL[,ARN=URL…]`, each URL as of `optionalUrl`; absent when nobody sets it. */
export const topicUrls = (
  options: Omit<Options<string>, 'default'> & { expected: string },
): Setting<ReadonlyMap<string, string> | undefined> =>
  setting<ReadonlyMap<string, string> | undefined>('ARN=URL[,…]', { ...options, default: undefined }, (value) => {
    const { expected } = options;
    const entries = text(value, expected).split(/,(?=arn:)/);
    return new Map(
      entries.map((entry): [string, string] => {
        const [, arn, url] = /^(arn:aws[a-z-]*:sns:[^=\s,]+)=(.+)$/.exec(entry) ?? [];
        if (arn === undefined || url === undefined) throw new Error(`must be ${expected}`);
        return [arn, checkedUrl(url, expected)];
      }),
    );
  });

/** The text, where it is an http or https URL without a password; throws as `Setting.read` does. */
export function checkedUrl(given: string, expected: string): string {
  if (!/^https?:\/\/\S+$/.test(given) || !URL.canParse(given)) throw new Error(`must be ${expected}`);
  const { username, password } = new URL(given);
  if (username !== '' || password !== '') throw new Error('must carry no user name or password in the URL');
  return given;
}

/** Network ranges in CIDR notation, a list or text with commas; a lone address is the range of itself. */
export const cidrs = (options: Options<string[]>): Setting<string[]> =>
  setting('CIDR[,CIDR]', options, (value) => {
    const list = Array.isArray(value) ? value : typeof value === 'string' ? value.split(',') : [value];
    return list
      .filter((one) => one !== '')
      .map((one) => {
        const range = text(one, 'network ranges such as 10.0.0.0/8,::1/128');
        const full = range.includes('/') ? range : `${range}/${range.includes(':') ? 128 : 32}`;
        if (!isCidr(full)) {
          throw new Error(`must be network ranges such as 10.0.0.0/8,::1/128; ${shown(range)} is none`);
        }
        return full;
      });
  });
