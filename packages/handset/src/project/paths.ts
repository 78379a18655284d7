import path from 'node:path';

/** The subset of `node:path` that these functions need, so that a test on Linux can hand in `path.win32`. */
export type PathRules = Pick<typeof path, 'relative' | 'isAbsolute' | 'sep' | 'join'>;

/** The name of `file` inside `root` with forward slashes, or undefined if it lies outside. */
export function projectName(root: string, file: string, rules: PathRules = path): string | undefined {
  const relative = rules.relative(root, file);
  if (relative === '') return '';
  if (rules.isAbsolute(relative)) return undefined;
  const name = relative.split(rules.sep).join('/');
  return name === '..' || name.startsWith('../') ? undefined : name;
}

/** The path on this machine of a project name such as `app/index.pug`. */
export function projectPath(root: string, name: string, rules: PathRules = path): string {
  return rules.join(root, ...name.split('/'));
}

/**
 * Order of sources in a bundle: folder by folder, the files of a folder before its subfolders, each by code unit.
 * Independent of locale and of the order in which a file system lists them.
 */
export function compareNames(a: string, b: string): number {
  const as = a.split('/');
  const bs = b.split('/');
  const depth = Math.min(as.length, bs.length);
  for (let i = 0; i < depth; i += 1) {
    const aIsFile = i === as.length - 1;
    const bIsFile = i === bs.length - 1;
    if (aIsFile !== bIsFile) return aIsFile ? -1 : 1;
    const x = as[i] ?? '';
    const y = bs[i] ?? '';
    if (x !== y) return x < y ? -1 : 1;
  }
  return as.length - bs.length;
}

/** The part after the last dot of a name's last segment, with the dot and in lower case; empty if there is none. */
export function extensionOf(name: string): string {
  const base = name.slice(name.lastIndexOf('/') + 1).toLowerCase();
  // The one extension of two parts: CoffeeScript between the paragraphs of a text.
  if (base.endsWith('.coffee.md')) return '.coffee.md';
  const dot = base.lastIndexOf('.');
  return dot <= 0 ? '' : base.slice(dot);
}
