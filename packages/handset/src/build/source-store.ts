import { readFileSync, statSync } from 'node:fs';
import { type Problem, ProblemError, problem } from '../problem.ts';
import { isGone, linkFault, listFiles } from '../project/list-files.ts';
import { projectPath } from '../project/paths.ts';
import { decodeSource } from '../project/source-text.ts';
import { contentHash } from './output.ts';

/** The sources of a project as they were last read, by project name. */
export interface SourceStore {
  /** Read everything again; returns the names whose content is new, changed or gone. */
  readAll(): Set<string>;
  /** Read what these names (files or folders, present or vanished) hold now; returns what changed. */
  refresh(names: Iterable<string>): Set<string>;
  names(): Iterable<string>;
  /** Changes whenever a name is added or removed, and only then. */
  readonly generation: number;
  has(name: string): boolean;
  /** The hash of a file's content, undefined if there is no such file. */
  hash(name: string): string | undefined;
  /** The text of a source; throws `include-missing` or `not-utf8`. */
  text(name: string): string;
  readonly problems: readonly Problem[];
}

/** Folders whose files are sources. */
export const SOURCE_FOLDERS: readonly string[] = ['app', 'vendor'];

interface Entry {
  readonly hash: string;
  /** Kept for everything but assets, whose bytes would only fill the memory. */
  readonly bytes: Uint8Array | undefined;
  readonly fault: Problem | undefined;
}

export function createSourceStore(root: string, folders: readonly string[] = SOURCE_FOLDERS): SourceStore {
  const entries = new Map<string, Entry>();
  /** What could not be listed or is a link that is not followed, by name. */
  const faults = new Map<string, Problem>();
  let generation = 0;

  const read = (name: string): Entry | undefined => {
    try {
      const bytes = readFileSync(projectPath(root, name));
      return { hash: contentHash(bytes), bytes: name.startsWith('app/assets/') ? undefined : bytes, fault: undefined };
    } catch (error) {
      // Deleted between the event and now: the same as deleted.
      if (isGone(error)) return undefined;
      const message = `The file cannot be read: ${error instanceof Error ? error.message : String(error)}.`;
      return {
        hash: `unreadable:${message}`,
        bytes: undefined,
        fault: problem('file-unreadable', { file: name, message }),
      };
    }
  };

  const update = (name: string, changed: Set<string>): void => {
    const before = entries.get(name);
    const now = read(name);
    if (before?.hash === now?.hash) return;
    changed.add(name);
    if (!before || !now) generation += 1;
    if (now) entries.set(name, now);
    else entries.delete(name);
  };

  return {
    readAll() {
      const changed = new Set<string>();
      const present = new Set<string>();
      faults.clear();
      for (const folder of folders) {
        const list = listFiles(root, folder);
        for (const fault of list.problems) faults.set(fault.file, fault);
        for (const name of list.files) present.add(name);
      }
      for (const name of [...entries.keys()]) if (!present.has(name)) update(name, changed);
      for (const name of present) update(name, changed);
      return changed;
    },
    refresh(names) {
      const changed = new Set<string>();
      for (const name of names) {
        for (const known of [...faults.keys()]) {
          if ((known === name || known.startsWith(`${name}/`)) && faults.delete(known)) changed.add(known);
        }
        const link = linkFault(root, name);
        if (link) {
          faults.set(name, link);
          changed.add(name);
          if (entries.delete(name)) generation += 1;
          continue;
        }
        if (isFolder(root, name)) {
          const list = listFiles(root, name);
          for (const fault of list.problems) faults.set(fault.file, fault);
          for (const file of list.files) update(file, changed);
        }
        // What was below a vanished folder is gone as well, even if no event told of each file.
        if (entries.has(name)) update(name, changed);
        else if (isFile(root, name)) update(name, changed);
        else for (const known of [...entries.keys()]) if (known.startsWith(`${name}/`)) update(known, changed);
      }
      return changed;
    },
    names: () => entries.keys(),
    has: (name) => entries.has(name),
    hash: (name) => entries.get(name)?.hash,
    text(name) {
      const entry = entries.get(name);
      if (!entry) throw new ProblemError('include-missing', { file: name, message: `There is no file ${name}.` });
      if (entry.fault) throw new ProblemError(entry.fault.code, entry.fault);
      return decodeSource(entry.bytes ?? readFileSync(projectPath(root, name)), name);
    },
    get generation() {
      return generation;
    },
    get problems() {
      return [...faults.values(), ...[...entries.values()].flatMap((entry) => entry.fault ?? [])];
    },
  };
}

function isFolder(root: string, name: string): boolean {
  return statSync(projectPath(root, name), { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function isFile(root: string, name: string): boolean {
  return statSync(projectPath(root, name), { throwIfNoEntry: false })?.isFile() ?? false;
}
