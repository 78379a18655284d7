import { posix } from 'node:path';
import type { ZipItem } from '../formats/zip.ts';

const RECORD = /^[^/]+\.dist-info\/RECORD$/;
/** Of all lists together, characters; what more than that names is code like any other. */
const LONGEST_LISTS = 32 * 1024 * 1024;
const NODE_PACKAGES = 'node_modules';

export interface CodeParts {
  /** What an installer of packages put there, and the directories that it is in. */
  packages: ZipItem[];
  /** Everything else, with the directories that it is in. */
  own: ZipItem[];
}

/**
 * Tells what npm or pip has installed from the rest: `node_modules`, and what the `RECORD` of a distribution names (PyPA, "Recording installed projects").
 * It depends on the contents alone, and decides nothing but which layer a file is in.
 */
export async function partsOf(items: readonly ZipItem[], language: 'node' | 'python'): Promise<CodeParts> {
  const named = language === 'python' ? await recorded(items) : undefined;
  const isPackage = ({ path }: ZipItem): boolean => named?.has(path) ?? path.startsWith(`${NODE_PACKAGES}/`);
  const things = items.filter((item) => item.type !== 'directory');
  const packages = things.filter(isPackage);
  const inPackages = parentsOf(packages);
  const own = things.filter((item) => !isPackage(item));
  const inOwn = parentsOf(own);
  const directories = items.filter((item) => item.type === 'directory');
  return {
    packages: [...directories.filter(({ path }) => inPackages.has(path)), ...packages],
    // A directory that holds nothing is the code's.
    own: [...directories.filter(({ path }) => inOwn.has(path) || !inPackages.has(path)), ...own],
  };
}

async function recorded(items: readonly ZipItem[]): Promise<Set<string>> {
  const named = new Set<string>();
  let length = 0;
  for (const item of items) {
    if (item.type !== 'file' || !RECORD.test(item.path)) continue;
    length += item.size;
    if (length > LONGEST_LISTS) break;
    const chunks: Uint8Array[] = [];
    for await (const chunk of item.open()) chunks.push(chunk);
    named.add(item.path);
    // A path, its hash and its size; one with a comma or a quote is in quotes. Programs in bin/ are named from where pip had put them first.
    for (const line of Buffer.concat(chunks).toString('utf8').split('\n')) {
      const [, quoted, plain] = /^(?:"((?:[^"]|"")*)"|([^,"]*))/.exec(line) ?? [];
      const path = posix.normalize(quoted?.replaceAll('""', '"') ?? plain ?? '').replace(/^(?:\.\.\/)+/, '');
      if (path !== '' && path !== '.') named.add(path);
    }
  }
  return named;
}

function parentsOf(items: readonly ZipItem[]): Set<string> {
  const parents = new Set<string>();
  for (const { path } of items) {
    for (let slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1)) {
      const parent = path.slice(0, slash);
      if (parents.has(parent)) break;
      parents.add(parent);
    }
  }
  return parents;
}
