import { isDigest, isRepositoryName, isTag } from '../../kernel/images/index.ts';
import { RegistryError } from './errors.ts';

/** What a path below `/v2/` names. */
export type RegistryRoute =
  | { kind: 'version' }
  | { kind: 'manifest'; name: string; tag: string }
  | { kind: 'manifest'; name: string; digest: string }
  | { kind: 'blob'; name: string; digest: string }
  | { kind: 'uploads'; name: string }
  | { kind: 'upload'; name: string; id: string }
  | { kind: 'tags'; name: string };

/** The base images of the machine: everybody's to read, nobody's to write. */
export const isBase = (name: string): boolean => name.startsWith('base/');

const UPLOAD_ID = /^[0-9a-f-]{36}$/;

/**
 * Reads the path of a request, as sent and without its query (OCI distribution spec, endpoints). A repository name may hold
 * slashes, so the path is read from its end. Throws `RegistryError`.
 */
export function parseRegistryPath(path: string): RegistryRoute {
  if (path === '/v2' || path === '/v2/') return { kind: 'version' };
  const parts = path.slice('/v2/'.length).split('/');
  const take = (count: number): { name: string; tail: string[] } => ({
    name: checkName(parts.slice(0, -count).join('/')),
    tail: parts.slice(-count),
  });
  if (parts.at(-2) === 'manifests') {
    const { name, tail } = take(2);
    const reference = decode(tail[1] ?? '');
    if (isDigest(reference)) return { kind: 'manifest', name, digest: reference };
    if (isTag(reference)) return { kind: 'manifest', name, tag: reference };
    throw new RegistryError(
      reference.includes(':') ? 'DIGEST_INVALID' : 'MANIFEST_INVALID',
      'that is neither a tag nor a sha256 digest',
    );
  }
  if (parts.at(-3) === 'blobs' && parts.at(-2) === 'uploads') {
    const { name, tail } = take(3);
    const id = tail[2] ?? '';
    if (id === '') return { kind: 'uploads', name };
    if (UPLOAD_ID.test(id)) return { kind: 'upload', name, id };
    throw new RegistryError('BLOB_UPLOAD_UNKNOWN', 'there is no such upload');
  }
  if (parts.at(-2) === 'blobs' && parts.at(-1) === 'uploads') return { kind: 'uploads', name: take(2).name };
  if (parts.at(-2) === 'blobs') {
    const { name, tail } = take(2);
    const digest = decode(tail[1] ?? '');
    if (isDigest(digest)) return { kind: 'blob', name, digest };
    throw new RegistryError('DIGEST_INVALID', 'that is not a sha256 digest');
  }
  if (parts.at(-2) === 'tags' && parts.at(-1) === 'list') return { kind: 'tags', name: take(2).name };
  throw new RegistryError('UNSUPPORTED', 'this registry has no such endpoint', { status: 404 });
}

function checkName(name: string): string {
  if (isRepositoryName(name)) return name;
  throw new RegistryError(
    'NAME_INVALID',
    'a repository name has lower-case letters, digits and . _ - / and at most 255 of them',
  );
}

// Clients may write the colon of a digest as %3A.
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
