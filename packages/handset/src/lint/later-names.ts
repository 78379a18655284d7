/** Names that are no part of ES5, each with what to write instead where there is more to say than "do without". */
type WaysOut = ReadonlyMap<string, string>;

const names = (list: string) => Object.fromEntries(list.split(' ').map((name) => [name, '']));

/** Global names, of the language and of the browsers that came with it. */
export const LATER_GLOBALS: WaysOut = mapOf({
  ...names(
    'Proxy Reflect WeakMap WeakSet WeakRef FinalizationRegistry AggregateError Atomics SharedArrayBuffer BigInt Intl Iterator',
  ),
  ...names('ArrayBuffer DataView Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array'),
  ...names(
    'Float32Array Float64Array BigInt64Array BigUint64Array AbortController AbortSignal TextEncoder TextDecoder',
  ),
  Promise: 'Pass a function to be called when it is done.',
  Map: 'Use an object with the keys as names.',
  Set: 'Use an object with the members as names.',
  Symbol: 'Use a string as the name.',
  globalThis: 'Write `window`.',
  fetch: 'Use XMLHttpRequest.',
  Headers: 'Use XMLHttpRequest and its setRequestHeader.',
  Request: 'Use XMLHttpRequest.',
  Response: 'Use XMLHttpRequest.',
  URLSearchParams: 'Join the parts with encodeURIComponent.',
  queueMicrotask: 'Use setTimeout(f, 0).',
  structuredClone: 'Use JSON.parse(JSON.stringify(value)).',
});

/** Members of ES5's own objects. */
export const LATER_STATICS: WaysOut = mapOf({
  ...names('Object.fromEntries Object.getOwnPropertyDescriptors Object.getOwnPropertySymbols Object.groupBy'),
  ...names('Object.setPrototypeOf Array.fromAsync String.raw RegExp.escape Math.clz32 Math.fround Math.imul'),
  ...names('Math.acosh Math.asinh Math.atanh Math.cosh Math.expm1 Math.log1p Math.sinh Math.tanh Math.f16round'),
  'Object.assign': 'Copy the names in a `for (key in other)` loop.',
  'Object.entries': 'Go through Object.keys(object).',
  'Object.values': 'Write Object.keys(object).map(function (key) { return object[key]; }).',
  'Object.hasOwn': 'Write Object.prototype.hasOwnProperty.call(object, name).',
  'Object.is': 'Compare with ===; isNaN finds NaN.',
  'Array.from': 'Write Array.prototype.slice.call(list).',
  'Array.of': 'Write [a, b].',
  'Number.isInteger': 'Write typeof n === "number" && isFinite(n) && Math.floor(n) === n.',
  'Number.isSafeInteger': 'Compare with 9007199254740991.',
  'Number.isNaN': 'Write n !== n.',
  'Number.isFinite': 'Write typeof n === "number" && isFinite(n).',
  'Number.parseInt': 'Write parseInt.',
  'Number.parseFloat': 'Write parseFloat.',
  'Number.EPSILON': 'Write Math.pow(2, -52).',
  'Number.MAX_SAFE_INTEGER': 'Write 9007199254740991.',
  'Number.MIN_SAFE_INTEGER': 'Write -9007199254740991.',
  'String.fromCodePoint': 'Use String.fromCharCode, with two numbers above 65535.',
  'Math.trunc': 'Write n < 0 ? Math.ceil(n) : Math.floor(n).',
  'Math.sign': 'Write (n > 0) - (n < 0).',
  'Math.hypot': 'Write Math.sqrt(x * x + y * y).',
  'Math.cbrt': 'Write Math.pow(n, 1 / 3).',
  'Math.log2': 'Write Math.log(n) / Math.LN2.',
  'Math.log10': 'Write Math.log(n) / Math.LN10.',
});

export type Receiver = 'array' | 'string' | 'regexp';

/** A method of arrays, strings and their like that ES5 does not have. */
export interface LaterMethod {
  readonly of: readonly Receiver[];
  readonly wayOut: string;
  /**
   * Reported only where its object is known to be an array, a string or their like: objects of the browser or of usual
   * applications have such a method, too, or it is nothing without one that is reported already.
   */
  readonly common?: true;
}

const LOOP = 'Use a loop, or filter(f)[0] where that is enough.';

/** The methods by name. */
export const LATER_METHODS: ReadonlyMap<string, LaterMethod> = mapOf<LaterMethod>({
  includes: { of: ['array', 'string'], wayOut: 'Write x.indexOf(y) !== -1.' },
  at: { of: ['array', 'string'], wayOut: 'Write list[list.length - 1] or text.charAt(i).' },
  find: { of: ['array'], wayOut: LOOP },
  findIndex: { of: ['array'], wayOut: 'Use a loop.' },
  findLast: { of: ['array'], wayOut: 'Use a loop from the end.' },
  findLastIndex: { of: ['array'], wayOut: 'Use a loop from the end.' },
  fill: { of: ['array'], wayOut: 'Use a loop.', common: true },
  copyWithin: { of: ['array'], wayOut: 'Use splice and slice.' },
  entries: { of: ['array'], wayOut: 'Use forEach(function (value, index) { … }).', common: true },
  keys: { of: ['array'], wayOut: 'Use Object.keys(list) or a loop.', common: true },
  values: { of: ['array'], wayOut: 'Use forEach.', common: true },
  flat: { of: ['array'], wayOut: 'Write Array.prototype.concat.apply([], lists).' },
  flatMap: { of: ['array'], wayOut: 'Write Array.prototype.concat.apply([], list.map(f)).' },
  toSorted: { of: ['array'], wayOut: 'Write list.slice().sort(f).' },
  toReversed: { of: ['array'], wayOut: 'Write list.slice().reverse().' },
  toSpliced: { of: ['array'], wayOut: 'Copy with slice(), then use splice.' },
  with: { of: ['array'], wayOut: 'Copy with slice(), then assign.', common: true },
  startsWith: { of: ['string'], wayOut: 'Write text.lastIndexOf(start, 0) === 0.' },
  endsWith: { of: ['string'], wayOut: 'Write text.slice(-end.length) === end.' },
  repeat: { of: ['string'], wayOut: 'Write new Array(n + 1).join(text).' },
  padStart: { of: ['string'], wayOut: "Write ('00' + n).slice(-2), or use a loop." },
  padEnd: { of: ['string'], wayOut: "Write (text + '    ').slice(0, 4), or use a loop." },
  trimStart: { of: ['string'], wayOut: "Write text.replace(/^\\s+/, '')." },
  trimEnd: { of: ['string'], wayOut: "Write text.replace(/\\s+$/, '')." },
  trimLeft: { of: ['string'], wayOut: "Write text.replace(/^\\s+/, '')." },
  trimRight: { of: ['string'], wayOut: "Write text.replace(/\\s+$/, '')." },
  replaceAll: { of: ['string'], wayOut: 'Use replace with a /…/g, or split(old).join(now).' },
  matchAll: { of: ['string'], wayOut: 'Call exec of a /…/g in a loop.' },
  codePointAt: { of: ['string'], wayOut: 'Use charCodeAt.' },
  normalize: { of: ['string'], wayOut: '', common: true },
  isWellFormed: { of: ['string'], wayOut: '' },
  toWellFormed: { of: ['string'], wayOut: '' },
  flags: { of: ['regexp'], wayOut: 'Ask for global, ignoreCase and multiline.', common: true },
  sticky: { of: ['regexp'], wayOut: '', common: true },
  unicode: { of: ['regexp'], wayOut: '', common: true },
});

/** A table whose every name was written here: an object would also know `constructor`. */
function mapOf<Value>(table: Readonly<Record<string, Value>>): ReadonlyMap<string, Value> {
  return new Map(Object.entries(table));
}
