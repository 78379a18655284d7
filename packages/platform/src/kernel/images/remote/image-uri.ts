import { isAbsolute } from 'node:path';
import { isDigest } from '../digest.ts';
import { ImageError } from '../images.ts';
import { isRepositoryName, isTag, parseReference, type Reference } from './reference.ts';

/** Where an image comes from, as one `uri` names it. */
export type ImageUri =
  | { kind: 'registry'; reference: Reference }
  | { kind: 'platform'; name: string; tag?: string; digest?: string }
  | { kind: 'oci' | 'oci-archive' | 'docker-archive'; path: string; tag?: string };

const LOCAL = /^(oci|oci-archive|docker-archive):(.*)$/s;
const PLATFORM = 'platform/';

/** Reads the forms that `Images.resolve` takes. Throws `ImageError('invalid')`. */
export function parseImageUri(uri: string): ImageUri {
  if (uri === '') throw new ImageError('invalid', 'The image name is empty.');
  if (uri.length > 4096 || uri.includes('\0'))
    throw new ImageError('invalid', 'The image name is too long or holds a NUL character.');
  const local = LOCAL.exec(uri);
  if (local) return parseLocal(local[1] ?? '', local[2] ?? '', uri);
  if (uri.startsWith(PLATFORM)) return parsePlatform(uri);
  return { kind: 'registry', reference: parseReference(uri) };
}

function parseLocal(kind: string, rest: string, uri: string): ImageUri {
  const colon = rest.lastIndexOf(':');
  const tail = rest.slice(colon + 1);
  const hasTag = colon > 0 && isTag(tail);
  const path = hasTag ? rest.slice(0, colon) : rest;
  if (!isAbsolute(path))
    throw new ImageError('invalid', `"${uri.slice(0, 300)}": the path after ${kind}: must be absolute.`);
  const location = { path, ...(hasTag ? { tag: tail } : {}) };
  if (kind === 'oci') return { kind: 'oci', ...location };
  return { kind: kind === 'oci-archive' ? 'oci-archive' : 'docker-archive', ...location };
}

function parsePlatform(uri: string): ImageUri {
  const [named = '', digest, ...more] = uri.slice(PLATFORM.length).split('@');
  const colon = named.lastIndexOf(':');
  const name = colon === -1 ? named : named.slice(0, colon);
  const tag = colon === -1 ? undefined : named.slice(colon + 1);
  const valid =
    more.length === 0 &&
    isRepositoryName(name) &&
    (tag === undefined || isTag(tag)) &&
    (digest === undefined || isDigest(digest));
  if (!valid) {
    throw new ImageError(
      'invalid',
      `"${uri.slice(0, 300)}" is not an image of the platform's store: expected platform/name:tag or platform/name@sha256:….`,
    );
  }
  if (digest !== undefined) return { kind: 'platform', name, digest };
  return { kind: 'platform', name, tag: tag ?? 'latest' };
}
