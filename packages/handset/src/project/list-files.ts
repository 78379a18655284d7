import { lstatSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { type Problem, problem } from '../problem.ts';
import { projectName, projectPath } from './paths.ts';

/** Editors' leftovers and files of the operating system that are never part of an application. */
const IGNORED = /^(\..*|.*~|#.*#|4913|.*\.sw[a-p]|.*\.tmp|Thumbs\.db|desktop\.ini)$/;

/** Whether a file or folder of this name is left out of every build. */
export function isIgnored(baseName: string): boolean {
  return IGNORED.test(baseName);
}

export interface FileList {
  /** Project names of all files, in no particular order. */
  readonly files: string[];
  /** Project names of all folders, `folder` itself first. */
  readonly folders: string[];
  readonly problems: Problem[];
}

/** List all files below `folder` (a project name); a missing folder is an empty list. Links to folders, and out of the application, are not followed. */
export function listFiles(root: string, folder: string): FileList {
  const list: FileList = { files: [], folders: [], problems: [] };
  const open = [folder];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const name: string = next;
    let entries: import('node:fs').Dirent[];
    try {
      entries = readdirSync(projectPath(root, name), { withFileTypes: true });
    } catch (error) {
      if (isGone(error)) continue;
      list.problems.push(
        problem('file-unreadable', { file: name, message: `Cannot list the folder: ${String(error)}` }),
      );
      continue;
    }
    list.folders.push(name);
    for (const entry of entries) {
      if (isIgnored(entry.name)) continue;
      const child = `${name}/${entry.name}`;
      if (entry.isDirectory()) open.push(child);
      else if (entry.isFile()) list.files.push(child);
      else if (entry.isSymbolicLink()) addLink(root, child, list);
    }
  }
  return list;
}

function addLink(root: string, name: string, list: FileList): void {
  const fault = linkFault(root, name);
  if (fault) list.problems.push(fault);
  else list.files.push(name);
}

/**
 * Why a link is not followed; undefined for what is no link, and for a link to a file of the application. What is built is
 * published: a link must not carry a file of the machine into it.
 */
export function linkFault(root: string, name: string): Problem | undefined {
  const file = projectPath(root, name);
  try {
    if (!lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink()) return undefined;
    if (!statSync(file).isFile()) {
      return problem('folder-link', { file: name, message: 'A link to a folder is not followed.' });
    }
    const target = realpathSync(file);
    // The source folders may be links themselves: whoever made them so meant it.
    const top = name.split('/', 1)[0] ?? '';
    const homes = [realpathSync(root), realpathSync(projectPath(root, top))];
    if (homes.some((home) => projectName(home, target) !== undefined)) return undefined;
    return problem('link-outside', { file: name, message: `The link leads outside the application, to ${target}.` });
  } catch {
    return problem('file-unreadable', { file: name, message: 'The link points to a file that is missing.' });
  }
}

/** Whether a file system error says that the file vanished (or was never there). */
export function isGone(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ENOENT' || code === 'ENOTDIR';
}
