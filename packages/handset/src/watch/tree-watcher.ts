import { type FSWatcher, lstatSync, watch } from 'node:fs';
import { type Problem, problem } from '../problem.ts';
import { type FileList, isGone, isIgnored, listFiles } from '../project/list-files.ts';
import { projectName, projectPath } from '../project/paths.ts';

export interface TreeWatcher {
  close(): void;
}

export interface TreeWatcherEvents {
  /** A file or folder of this project name was made, changed or removed; a hint, not a promise. */
  readonly onChange: (name: string) => void;
  /** A folder cannot be watched. */
  readonly onProblem: (problem: Problem) => void;
}

/**
 * Watch source folders of a project. Linux has no recursive watch, so there each folder has its own (Node's emulation
 * watches every file, which is far more handles); elsewhere one recursive watch does.
 */
export function watchTree(
  root: string,
  folders: readonly string[],
  events: TreeWatcherEvents,
  recursive = process.platform !== 'linux',
): TreeWatcher {
  const watchers = new Map<string, FSWatcher>();
  let closed = false;

  const unwatch = (name: string): void => {
    for (const [watched, watcher] of watchers) {
      if (watched === name || watched.startsWith(`${name}/`)) {
        watcher.close();
        watchers.delete(watched);
      }
    }
  };

  const watchFolder = (name: string): void => {
    if (closed || watchers.has(name)) return;
    try {
      const watcher = watch(projectPath(root, name), { recursive: recursive && name !== '' }, (_event, file) => {
        notice(name, file === null ? undefined : String(file));
      });
      watcher.on('error', (error) => {
        unwatch(name);
        if (!isGone(error) && statOf(root, name)) events.onProblem(watchProblem(name, error));
      });
      watchers.set(name, watcher);
    } catch (error) {
      if (!isGone(error)) events.onProblem(watchProblem(name, error));
    }
  };

  /** Watch a folder that is new; what is in it already may have been made before the watch stood. */
  const enter = (name: string): void => {
    if (recursive) {
      watchFolder(name);
      events.onChange(name);
      return;
    }
    let before: number;
    let list: FileList;
    do {
      before = watchers.size;
      list = listFiles(root, name);
      for (const folder of list.folders) watchFolder(folder);
    } while (watchers.size > before);
    for (const file of list.files) events.onChange(file);
  };

  const notice = (folder: string, file: string | undefined): void => {
    if (closed) return;
    if (file === undefined) {
      events.onChange(folder);
      return;
    }
    const name = projectName(root, projectPath(root, folder === '' ? file : `${folder}/${file.replaceAll('\\', '/')}`));
    if (name === undefined || name.split('/').some(isIgnored)) return;
    // The root is watched only to see source folders come and go.
    if (folder === '' && !folders.includes(name)) return;
    const stat = statOf(root, name);
    if (stat?.isDirectory()) {
      // A known name may be another folder by now, as after a checkout: its watch is of the one that is gone.
      if (watchers.has(name)) events.onChange(name);
      unwatch(name);
      enter(name);
      return;
    }
    if (!stat) unwatch(name);
    events.onChange(name);
  };

  watchFolder('');
  for (const folder of folders) {
    if (recursive) {
      if (statOf(root, folder)) watchFolder(folder);
    } else {
      for (const name of listFiles(root, folder).folders) watchFolder(name);
    }
  }

  return {
    close() {
      closed = true;
      for (const watcher of watchers.values()) watcher.close();
      watchers.clear();
    },
  };
}

/** Of a link itself: folders behind links are not watched. */
function statOf(root: string, name: string) {
  return lstatSync(projectPath(root, name), { throwIfNoEntry: false });
}

function watchProblem(name: string, error: unknown): Problem {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  const message = error instanceof Error ? error.message : String(error);
  if (code === 'ENOSPC' || code === 'EMFILE') {
    return problem('watch-limit', { file: name, message: `The system allows no more watches: ${message}.` });
  }
  return problem('file-unreadable', { file: name, message: `The folder cannot be watched: ${message}.` });
}
