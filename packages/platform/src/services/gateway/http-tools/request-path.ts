import type { DocumentValue } from '@agentplatform/contract';
import type { HttpParameter } from './http-tool.ts';
import { percentEncoded } from './percent.ts';
import { RefusedArgumentError } from './refused-argument.ts';
import { label, matrix, simple, textOf } from './style.ts';

/** How often a server behind a server may decode a path. */
const DECODINGS = 3;

/** The value of a parameter as a part of the path. Throws `RefusedArgumentError` for what would change which path it is. */
export function pathText(parameter: HttpParameter, value: DocumentValue): string {
  const { argument, style } = parameter;
  for (const text of textsOf(value)) refuseTraversal(text, argument);
  const encode = (text: string): string => percentEncoded(text, argument);
  const written = { ...parameter, encode };
  if (parameter.content !== undefined) return notEmpty(encode(contentText(parameter.content, value)), argument);
  if (parameter.greedy === true) return notEmpty(textOf(value).split('/').map(encode).join('/'), argument);
  if (style === 'matrix') return matrix(value, written);
  return style === 'label' ? label(value, written) : notEmpty(simple(value, written), argument);
}

/** A parameter with a media type: JSON, or as it is. */
export function contentText(mediaType: string, value: DocumentValue): string {
  return typeof value === 'string' && !mediaType.includes('json') ? value : JSON.stringify(value);
}

/** An empty segment would make `/users/{id}` the list of users. */
function notEmpty(text: string, argument: string): string {
  if (text === '')
    throw new RefusedArgumentError(`The argument ${argument} is a part of the path and must not be empty.`);
  return text;
}

function textsOf(value: DocumentValue): string[] {
  if (typeof value !== 'object' || value === null) return [textOf(value)];
  const inner = Array.isArray(value) ? value : Object.entries(value).flat();
  return inner.map(textOf);
}

/** Refuses `..` and `.` between slashes of any kind, however often encoded, also in the letters that become them (U+FF0E, U+FF0F). */
function refuseTraversal(text: string, argument: string): void {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  if (/[\x00-\x1f\x7f]/.test(text))
    throw new RefusedArgumentError(
      `The argument ${argument} is a part of the path and must not have control characters.`,
    );
  let decoded = text;
  for (let times = 0; times <= DECODINGS; times += 1) {
    const segments = decoded.normalize('NFKC').split(/[/\\;]/);
    if (segments.some((segment) => segment === '..' || segment === '.' || segment.includes('\0')))
      throw new RefusedArgumentError(
        `The argument ${argument} is a part of the path and must not lead to another path ('.' and '..' are segments).`,
      );
    decoded = decodedOnce(decoded);
  }
}

function decodedOnce(text: string): string {
  // Bytes that spell '.' and '/' longer than UTF-8 allows, which lenient decoders read all the same.
  const plain = text.replace(/%c0%ae|%e0%80%ae/gi, '.').replace(/%c0%af|%e0%80%af/gi, '/');
  return plain.replace(/(?:%[0-9a-f]{2})+/gi, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'));
}
