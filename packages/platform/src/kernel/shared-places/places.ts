import { isBucketName } from '../objects/index.ts';
import { isName } from './objects/tree.ts';

/** Where the files of an access point are. */
export type Place =
  | { kind: 'directory'; path: string }
  /** `host:/export`, as mount(8) names it. */
  | { kind: 'nfs'; source: string }
  /** Objects whose keys begin with `prefix/`, which has no slash at either end; with an empty one all of the bucket. */
  | { kind: 'objects'; bucket: string; prefix: string };

const ENTRY = /^(fsap-[0-9a-f]{8,40})=([^\0]+)$/;
const NFS = /^nfs:\/\/([a-zA-Z0-9.-]+|\[[0-9a-fA-F:]+\])(\/.*)$/s;
const OBJECTS = /^s3:\/\/([^/]+)(?:\/(.*?))?\/?$/s;
/** Leaves room for names in the 1,024 bytes that a key has. */
const MAX_PREFIX_BYTES = 512;

/** What a list of places looks like, for the configuration. */
export const PLACES =
  /^fsap-[0-9a-f]{8,40}=(\/|nfs:\/\/|s3:\/\/)[^,\0]+(,\s*fsap-[0-9a-f]{8,40}=(\/|nfs:\/\/|s3:\/\/)[^,\0]+)*$/;

/** Reads `fsap-0123456789abcdef0=/srv/shared,fsap-…=nfs://host/export,fsap-…=s3://bucket/prefix`. Throws an Error that names the entry which is none. */
export function readPlaces(text: string): Map<string, Place> {
  const places = new Map<string, Place>();
  for (const entry of text.split(',').map((part) => part.trim())) {
    if (entry === '') continue;
    const [, id, where = ''] = ENTRY.exec(entry) ?? [];
    const place = readPlace(where);
    if (id === undefined || place === undefined) throw new Error(`"${entry.slice(0, 100)}" is not a shared place`);
    if (places.has(id)) throw new Error(`${id} is named twice`);
    places.set(id, place);
  }
  return places;
}

function readPlace(text: string): Place | undefined {
  if (text.startsWith('/')) return { kind: 'directory', path: text };
  const [, host, exported] = NFS.exec(text) ?? [];
  if (host !== undefined) return { kind: 'nfs', source: `${host}:${exported}` };
  const [, bucket = '', prefix = ''] = OBJECTS.exec(text) ?? [];
  if (!isBucketName(bucket)) return undefined;
  const named = prefix === '' || (prefix.isWellFormed() && prefix.split('/').every(isName));
  return named && Buffer.byteLength(prefix) <= MAX_PREFIX_BYTES ? { kind: 'objects', bucket, prefix } : undefined;
}
