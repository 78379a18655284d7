import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { type Problem, ProblemError, problem } from '../problem.ts';
import { isGone, listFiles } from '../project/list-files.ts';
import { projectPath } from '../project/paths.ts';
import { contentHash, type Output } from './output.ts';

const MANIFEST = '.handset/outputs.json';

export interface WriteResult {
  /** Names below public/ whose content changed on disk. */
  readonly written: string[];
  readonly removed: string[];
  readonly problems: Problem[];
}

/** The output folder of one project: writes what changed, removes what handset wrote earlier and no longer makes. */
export interface PublicFolder {
  /** Bring public/ in line with `outputs`; throws `output-readonly`. With `clean`, files of others are removed too. */
  write(outputs: ReadonlyMap<string, Output>, options?: { clean?: boolean }): WriteResult;
}

/**
 * Every file is replaced by a rename, so that a reader sees the old content or the new and never a part. The names
 * written are kept in `.handset/outputs.json`: only they are ever removed without being asked.
 */
export function createPublicFolder(root: string): PublicFolder {
  let known: Map<string, string> | undefined;
  // Another handset that builds the same project, for production perhaps, writes the list anew.
  let listed: string | undefined;
  return {
    write(outputs, { clean = false } = {}) {
      const folderIsThere = existsSync(projectPath(root, 'public'));
      if (known && manifestState(root) !== listed) known = undefined;
      const first = known === undefined || !folderIsThere || clean;
      const before = folderIsThere ? (known ?? readManifest(root)) : new Map<string, string>();
      const result: WriteResult = { written: [], removed: [], problems: [] };
      try {
        for (const name of before.keys()) if (!outputs.has(name)) remove(root, name, result.removed);
        if (first) handleForeign(root, outputs, clean, result);
        for (const [name, output] of outputs) {
          const current = first ? hashOnDisk(root, name) : before.get(name);
          if (current === output.hash) continue;
          if (replace(root, name, output)) result.written.push(name);
        }
        const now = new Map([...outputs].map(([name, output]) => [name, output.hash]));
        if (first || result.written.length + result.removed.length > 0) writeManifest(root, now, known);
        known = now;
        listed = manifestState(root);
      } catch (error) {
        known = undefined;
        throw writeProblem(error);
      }
      return result;
    },
  };
}

function handleForeign(root: string, outputs: ReadonlyMap<string, Output>, clean: boolean, result: WriteResult): void {
  const { files } = listFiles(root, 'public');
  const foreign = files.map((file) => file.slice('public/'.length)).filter((name) => !outputs.has(name));
  if (foreign.length === 0) return;
  if (clean) {
    for (const name of foreign) remove(root, name, result.removed);
    return;
  }
  const shown = foreign.slice(0, 3).join(', ') + (foreign.length > 3 ? ` and ${foreign.length - 3} more` : '');
  result.problems.push(
    problem('output-foreign', { file: 'public', message: `public/ holds files that handset did not write: ${shown}.` }),
  );
}

function replace(root: string, name: string, output: Output): boolean {
  let bytes: Uint8Array;
  try {
    bytes = output.read();
  } catch (error) {
    // The source vanished after it was listed; the event that says so brings the next build.
    if (isGone(error)) return false;
    throw error;
  }
  const target = projectPath(root, `public/${name}`);
  const temporary = projectPath(root, `.handset/next-${process.pid}`);
  mkdirSync(path.dirname(target), { recursive: true });
  mkdirSync(path.dirname(temporary), { recursive: true });
  writeFileSync(temporary, bytes);
  try {
    renameWithPatience(temporary, target);
  } finally {
    rmSync(temporary, { force: true });
  }
  return true;
}

/** On Windows a rename fails while a virus scanner or a reader holds the target: then write in place. */
function renameWithPatience(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : '';
    if (code !== 'EXDEV' && !(process.platform === 'win32' && (code === 'EPERM' || code === 'EBUSY'))) throw error;
    writeFileSync(to, readFileSync(from));
  }
}

function remove(root: string, name: string, removed: string[]): void {
  rmSync(projectPath(root, `public/${name}`), { force: true });
  removed.push(name);
  for (let folder = path.posix.dirname(name); folder !== '.'; folder = path.posix.dirname(folder)) {
    const directory = projectPath(root, `public/${folder}`);
    try {
      if (readdirSync(directory).length > 0) return;
      rmdirSync(directory);
    } catch {
      return;
    }
  }
}

function hashOnDisk(root: string, name: string): string | undefined {
  try {
    return contentHash(readFileSync(projectPath(root, `public/${name}`)));
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

function readManifest(root: string): Map<string, string> {
  try {
    const value: unknown = JSON.parse(readFileSync(projectPath(root, MANIFEST), 'utf8'));
    if (!Array.isArray(value)) return new Map();
    // A name that leads out of public/ is not one that handset wrote.
    const names = value.filter((n): n is string => typeof n === 'string' && !n.split(/[\\/]/).includes('..'));
    return new Map(names.map((name) => [name, '']));
  } catch {
    return new Map();
  }
}

/** Differs from what it was when another process has written the list. */
function manifestState(root: string): string {
  const stat = statSync(projectPath(root, MANIFEST), { throwIfNoEntry: false, bigint: true });
  return stat ? `${stat.ino} ${stat.mtimeNs}` : '';
}

function writeManifest(root: string, now: Map<string, string>, before: Map<string, string> | undefined): void {
  const same = before !== undefined && before.size === now.size && [...now.keys()].every((name) => before.has(name));
  if (same && existsSync(projectPath(root, MANIFEST))) return;
  mkdirSync(projectPath(root, '.handset'), { recursive: true });
  writeFileSync(projectPath(root, MANIFEST), `${JSON.stringify([...now.keys()].sort(), null, 1)}\n`);
}

function writeProblem(error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error)) return error;
  const [reason, remedy] = WRITE_FAULTS[String(error.code)] ?? [];
  if (reason === undefined) return error;
  const where = 'path' in error && typeof error.path === 'string' ? error.path : 'public/';
  return new ProblemError('output-readonly', { file: 'public', message: `Cannot write ${where}: ${reason}.`, remedy });
}

const FREE_SPACE = 'Free some space on the disk, then save again.';
const IN_THE_WAY = 'Move what stands there away, then save again.';

/** What a system error says about writing, and the way out where it is not that of `output-readonly`. */
const WRITE_FAULTS: Record<string, readonly [reason: string, remedy?: string]> = {
  EACCES: ['you may not write there'],
  EPERM: ['you may not write there'],
  EROFS: ['the file system is read-only', 'Mount it for writing, or work on a copy of the project elsewhere.'],
  ENOSPC: ['the disk is full', FREE_SPACE],
  EDQUOT: ['your disk quota is used up', FREE_SPACE],
  ENOTDIR: ['a file stands where a folder is needed', IN_THE_WAY],
  EEXIST: ['a file stands where a folder is needed', IN_THE_WAY],
  EISDIR: ['a folder stands where a file is needed', IN_THE_WAY],
};
