/** What a tool takes or gives, as a schema says it; null for a type of which nothing is made. */
export type ShapeOutline =
  | { type: 'Bool' | 'Long' | 'String' | 'decimal' }
  | { type: 'Set'; element: ShapeOutline | null }
  | { type: 'Record'; fields: { name: string; shape: ShapeOutline | null; required: boolean }[] }
  | null;

/** The values that a text of policies speaks of, and their neighbours. */
export interface Constants {
  texts: string[];
  integers: number[];
  decimals: number[];
  /** The windows, in seconds. */
  windows: number[];
}

const MOST_TEXTS = 6;
const MOST_INTEGERS = 12;
const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;

export function constantsOf(text: string): Constants {
  const bare = text.replace(/AgentCore::\w+::"(?:[^"\\]|\\.)*"/g, '');
  const texts = [...bare.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, one = '']) => one.replace(/\\(.)/g, '$1'));
  const windows = [...bare.matchAll(/\b(\d+)([smhd])\b/g)].map(
    ([, count, unit]) => Number(count) * SECONDS[unit as keyof typeof SECONDS],
  );
  const numbers = [...bare.replace(/"[^"]*"|\b\d+[smhd]\b/g, '').matchAll(/-?\b\d+\b/g)].map(Number);
  const integers = [0, ...numbers.filter(Number.isSafeInteger).flatMap((one) => [one, one + 1, one - 1])];
  const decimals = texts.filter((one) => /^-?\d+\.\d+$/.test(one)).map(Number);
  return {
    texts: [...new Set([...texts.map((one) => one.replaceAll('*', '')), 'other'])].slice(0, MOST_TEXTS),
    integers: [...new Set(integers)].slice(0, MOST_INTEGERS),
    decimals: [...new Set([0, ...decimals.flatMap((one) => [one, one + 1])])],
    windows: [...new Set(windows)],
  };
}

/**
 * Values of a shape, the plainest first, at most so many: each field takes each of its values once while the others stay as they are, so what
 * depends on two of them together may be missed. Nothing is made of a shape without a type.
 */
export function valuesOf(shape: ShapeOutline, constants: Constants, most: number): unknown[] {
  switch (shape?.type) {
    case 'Bool':
      return [true, false].slice(0, most);
    case 'Long':
      return constants.integers.slice(0, most);
    case 'String':
      return constants.texts.slice(0, most);
    case 'decimal':
      return constants.decimals.slice(0, most);
    case 'Set':
      return [[], ...valuesOf(shape.element, constants, most).map((one) => [one])].slice(0, most);
    case 'Record':
      return recordsOf(shape.fields, constants, most);
    default:
      return [];
  }
}

type Fields = Extract<ShapeOutline, { type: 'Record' }>['fields'];

function recordsOf(fields: Fields, constants: Constants, most: number): Record<string, unknown>[] {
  const made = fields.map(({ name, shape, required }) => ({
    name,
    required,
    values: valuesOf(shape, constants, most),
  }));
  const usable = made.filter(({ values }) => values.length > 0);
  const whole = Object.fromEntries(usable.map(({ name, values }) => [name, values[0]]));
  const needed = Object.fromEntries(usable.filter(({ required }) => required).map(({ name }) => [name, whole[name]]));
  const varied = usable.flatMap(({ name, values }) => values.slice(1).map((value) => ({ ...whole, [name]: value })));
  const all = usable.length === Object.keys(needed).length ? [whole, ...varied] : [whole, needed, ...varied];
  return all.slice(0, most);
}
