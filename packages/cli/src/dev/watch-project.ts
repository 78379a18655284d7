import { type FSWatcher, watch } from 'node:fs';
import { dirname, join } from 'node:path';
import { projectFiles } from '../package/project-files.ts';
import type { Project } from '../project/project.ts';

const quietMs = 150;

/**
 * Resolves with true once a file of the project has changed and nothing has for 150 ms, or with false when `signal` aborts.
 * Watches only folders that hold deployed files: not node_modules, not the agent's own state.
 */
export async function nextChange(project: Project, signal: AbortSignal): Promise<boolean> {
  const folders = new Set([project.folder]);
  for (const file of await projectFiles(project)) folders.add(join(project.folder, dirname(file)));
  const watchers: FSWatcher[] = [];
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<boolean>((resolve) => {
      if (signal.aborted) return resolve(false);
      signal.addEventListener('abort', () => resolve(false), { once: true });
      const changed = (name: string | null): void => {
        if (name?.startsWith('.') || name === '__pycache__' || name === 'node_modules') return;
        clearTimeout(timer);
        timer = setTimeout(() => resolve(true), quietMs);
      };
      for (const folder of folders) {
        const watcher = watch(folder, (_event, name) => changed(name));
        watcher.on('error', () => changed(null));
        watchers.push(watcher);
      }
    });
  } finally {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  }
}
