import type { DocumentValue } from '@agentplatform/contract';
import { isObject } from '../tools/json-pointer.ts';

const MASK = '[masked]';
/** Shorter ones would take ordinary words out of answers. */
const SHORTEST_SECRET = 4;
/** A run of base64 that is shorter says too little to be told from chance. */
const SHORTEST_RUN = 8;

/** Takes secrets out of what a backend answers, in the forms in which backends echo them. */
export interface Mask {
  text(text: string): string;
  /** Each string, number and name in it; the value itself where nothing is masked. */
  value(value: DocumentValue): DocumentValue;
  /** Each byte of a secret becomes `*`. */
  bytes(bytes: Buffer): Buffer;
  /** The same of bytes that come in parts, wherever a secret is cut; only an end that may begin one waits for the next part. */
  parts(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array>;
}

/** A mask of these secrets: as they are, as JSON and HTML escape them, percent-encoded, in hex, and in base64 at any place of the encoded text. */
export function createMask(secrets: readonly string[]): Mask {
  const masked = secrets.filter((secret) => secret.length >= SHORTEST_SECRET);
  const forms = [...new Set(masked.flatMap(formsOf))].sort((a, b) => b.length - a.length);
  const text = (given: string): string => forms.reduce((rest, form) => rest.replaceAll(form, MASK), given);
  const value = (given: DocumentValue): DocumentValue => {
    if (typeof given === 'string') return text(given);
    if (typeof given === 'number') {
      const shown = text(String(given));
      return shown.includes(MASK) ? shown : given;
    }
    if (Array.isArray(given)) return mapped(given, value);
    if (!isObject(given)) return given;
    const entries = Object.entries(given).map(([name, one]): [string, DocumentValue] => [
      text(name),
      value(one ?? null),
    ]);
    const same = entries.every(([name, one]) => given[name] === one || (one === null && given[name] === undefined));
    return same ? given : Object.fromEntries(entries);
  };
  return {
    ...{ text, value, bytes: (bytes) => maskedBytes(bytes, forms) },
    parts: (parts) => maskedParts(parts, forms),
  };
}

async function* maskedParts(parts: AsyncIterable<Uint8Array>, forms: readonly string[]): AsyncGenerator<Uint8Array> {
  const written = forms.map((form) => Buffer.from(form, 'utf8'));
  let held: Uint8Array = Buffer.alloc(0);
  for await (const part of parts) {
    const all = maskedBytes(Buffer.concat([held, part]), forms);
    const whole = all.length - Math.max(0, ...written.map((form) => begunAtEnd(all, form)));
    if (whole > 0) yield all.subarray(0, whole);
    held = all.subarray(whole);
  }
  if (held.length > 0) yield held;
}

/** How many bytes at the end are the beginning of that form, but not all of it. */
function begunAtEnd(bytes: Buffer, form: Buffer): number {
  const first = form[0] ?? 0;
  for (
    let at = bytes.indexOf(first, Math.max(0, bytes.length - form.length + 1));
    at >= 0;
    at = bytes.indexOf(first, at + 1)
  )
    if (bytes.subarray(at).equals(form.subarray(0, bytes.length - at))) return bytes.length - at;
  return 0;
}

function mapped(list: DocumentValue[], each: (value: DocumentValue) => DocumentValue): DocumentValue[] {
  const made = list.map(each);
  return made.every((one, index) => one === list[index]) ? list : made;
}

function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret, 'utf8');
  const json = JSON.stringify(secret).slice(1, -1);
  const percent = encodeURIComponent(secret.toWellFormed());
  const strict = percent.replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  const html = secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const hex = bytes.toString('hex');
  const encoded = [percent, strict, percent.replaceAll('%20', '+'), strict.replaceAll('%20', '+')];
  return [
    secret,
    json,
    json.replaceAll('/', '\\/'),
    escapedJson(json),
    html,
    html.replaceAll('"', '&quot;').replaceAll("'", '&#39;'),
    ...encoded,
    ...encoded.map((form) => form.replace(/%[0-9A-F]{2}/g, (octet) => octet.toLowerCase())),
    ...(hex.length >= SHORTEST_RUN ? [hex, hex.toUpperCase()] : []),
    ...base64Forms(bytes),
  ];
}

/** As servers escape JSON that may stand in a page: `<`, `>`, `&`, `'` and what is not ASCII by their numbers. */
function escapedJson(json: string): string {
  return json.replace(/[<>&'\u0080-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** What the secret's bytes become at each of the three places where they may begin, without the digits that its neighbours share. */
function base64Forms(bytes: Buffer): string[] {
  const runs = [0, 1, 2].map((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=/g, '');
    const shared = (before + bytes.length) % 3 === 0 ? 0 : 1;
    return encoded.slice(before === 0 ? 0 : before + 1, encoded.length - shared);
  });
  const long = runs.filter((run) => run.length >= SHORTEST_RUN);
  return [...long, ...long.map((run) => run.replaceAll('+', '-').replaceAll('/', '_'))];
}

function maskedBytes(bytes: Buffer, forms: readonly string[]): Buffer {
  let masked = bytes;
  for (const form of forms.map((one) => Buffer.from(one, 'utf8')))
    for (let at = masked.indexOf(form); at >= 0; at = masked.indexOf(form, at + form.length)) {
      if (masked === bytes) masked = Buffer.from(bytes);
      masked.fill('*', at, at + form.length);
    }
  return masked;
}
