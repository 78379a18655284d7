import type { Stats } from 'node:fs';
import { lstat, readdir, readlink, realpath } from 'node:fs/promises';
import { join, posix, sep } from 'node:path';
import type { CopyStep } from './copy-step.ts';
import type { Ignored } from './ignore-file.ts';
import { lineError } from './instructions.ts';
import type { LayerEntry } from './layer-file.ts';
import { pathPattern } from './path-pattern.ts';

export interface BuildContext {
  /** Absolute, no symbolic link in it. */
  folder: string;
  ignored: Ignored;
}

/** Paths that are folders in every base one would stand on: a file that is copied there goes into them. */
export const USUAL_FOLDERS: readonly string[] = [
  ...[
    '/',
    '/bin',
    '/etc',
    '/home',
    '/lib',
    '/media',
    '/mnt',
    '/opt',
    '/root',
    '/run',
    '/sbin',
    '/srv',
    '/tmp',
    '/usr',
    '/var',
  ],
  ...[
    '/usr/bin',
    '/usr/lib',
    '/usr/local',
    '/usr/local/bin',
    '/usr/local/lib',
    '/usr/local/share',
    '/usr/sbin',
    '/usr/share',
  ],
  ...['/usr/src', '/var/lib', '/var/log', '/var/tmp'],
];

const MOST_FILES = 100_000;
const DEEPEST = 200;

/**
 * What one COPY puts into its layer, sorted by the caller. `folders` are the paths that are known to be folders; those that it
 * makes are added. Links inside of a folder are copied as links; none is followed out of the build context. Throws a `CliError`
 * (usage) that names the line.
 */
export async function copiedEntries(
  step: CopyStep,
  context: BuildContext,
  folders: Set<string>,
): Promise<LayerEntry[]> {
  const entries = new Map<string, LayerEntry>();
  const add = (entry: LayerEntry): void => {
    // Of two files of one name the later one stays.
    entries.set(entry.path, entry);
    if (entries.size > MOST_FILES) throw lineError(step.line, `more than ${MOST_FILES} files would be copied.`);
  };
  const found = await sourcesOf(step, context);
  const into = step.intoFolder || found.length > 1 || folders.has(step.target);
  for (const source of found) {
    if (source.info.isDirectory()) {
      await addFolder(step, context, source.path, step.target, add);
      makeFolders(folders, step.target);
    } else {
      const path = into ? posix.join(step.target, posix.basename(source.named)) : step.target;
      add(fileEntry(step, path, join(context.folder, source.path), source.info));
      makeFolders(folders, posix.dirname(path));
    }
  }
  // An empty folder is a folder, too.
  if (entries.size === 0 && !folders.has(step.target))
    add({ kind: 'folder', path: step.target, ...metadata(step, 0o755) });
  for (const entry of entries.values()) if (entry.kind === 'folder') makeFolders(folders, entry.path);
  return [...entries.values()];
}

/** Notes a folder and those above it. */
export function makeFolders(folders: Set<string>, path: string): void {
  for (let at = path; !folders.has(at); at = posix.dirname(at)) folders.add(at);
}

interface Source {
  /** As in the file system, relative to the context. */
  path: string;
  /** As the Containerfile calls it: the name that a file keeps. */
  named: string;
  info: Stats;
}

async function sourcesOf(step: CopyStep, context: BuildContext): Promise<Source[]> {
  const found: Source[] = [];
  for (const text of step.sources) {
    // As with every builder, a source begins at the context: `/src` and `../src` are `src`.
    const source = posix.join('/', text).slice(1).replace(/\/+$/, '');
    const paths = /[*?[\\]/.test(source) ? await matching(source.split('/'), context) : [source];
    const before = found.length;
    for (const named of paths) {
      const place = await within(context, named, step);
      if (place !== undefined && !(place.path !== '' && !place.info.isDirectory() && context.ignored.ignores(named)))
        found.push({ ...place, named });
    }
    if (found.length === before)
      throw lineError(
        step.line,
        `${text.slice(0, 200)} is not among the files of this folder.`,
        'If it is there, the ignore file (.dockerignore, .containerignore) may leave it out.',
      );
  }
  return found;
}

/** Where a source really is, links followed as long as they stay inside; undefined when there is nothing. */
async function within(
  { folder }: BuildContext,
  path: string,
  step: CopyStep,
): Promise<Omit<Source, 'named'> | undefined> {
  const real = await realpath(join(folder, path)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  });
  if (real === undefined) return undefined;
  if (real !== folder && !real.startsWith(folder + sep))
    throw lineError(step.line, `${path.slice(0, 200)} is outside this folder. Only files in the folder can be copied.`);
  const info = await lstat(real);
  return { path: real.slice(folder.length + 1), info };
}

async function matching(pattern: readonly string[], { folder, ignored }: BuildContext): Promise<string[]> {
  let level = [''];
  for (const part of pattern) {
    const fits = pathPattern([part === '**' ? '*' : part]);
    const next: string[] = [];
    for (const below of level) {
      const names = await readdir(join(folder, below)).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOTDIR' || error.code === 'ENOENT') return [];
        throw error;
      });
      next.push(...names.filter((name) => fits([name])).map((name) => posix.join(below, name)));
    }
    level = next.sort();
  }
  return level.filter((path) => !ignored.ignores(path) || ignored.exceptions);
}

async function addFolder(
  step: CopyStep,
  context: BuildContext,
  folder: string,
  target: string,
  add: (entry: LayerEntry) => void,
): Promise<void> {
  const walk = async (below: string, depth: number): Promise<void> => {
    if (depth > DEEPEST) throw lineError(step.line, `${folder} has folders nested more than ${DEEPEST} deep.`);
    for (const name of (await readdir(join(context.folder, folder, below))).sort()) {
      const inner = posix.join(below, name);
      const source = posix.join(folder, inner);
      const left = context.ignored.ignores(source);
      const place = join(context.folder, source);
      const info = await lstat(place);
      const path = posix.join(target, inner);
      if (info.isDirectory()) {
        if (!left) add({ kind: 'folder', path, ...metadata(step, 0o755) });
        // An ignored folder may contain a file that a later rule includes again.
        if (!left || context.ignored.exceptions) await walk(inner, depth + 1);
      } else if (left) continue;
      else if (info.isSymbolicLink()) add({ kind: 'link', path, target: await readlink(place), ...step.owner });
      else if (info.isFile()) add(fileEntry(step, path, place, info));
    }
  };
  await walk('', 0);
}

function fileEntry(step: CopyStep, path: string, source: string, info: Stats): LayerEntry {
  if (!info.isFile()) throw lineError(step.line, `${path} would be neither a file nor a folder.`);
  return { kind: 'file', path, source, size: info.size, ...metadata(step, info.mode & 0o111 ? 0o755 : 0o644) };
}

// Only whether a file can be executed is taken from here: the rest depends on who checked it out, and how.
function metadata(step: CopyStep, usual: number) {
  return { ...step.owner, mode: step.mode ?? usual };
}
