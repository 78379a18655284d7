import { readdir } from 'node:fs/promises';
import { join, matchesGlob } from 'node:path';
import type { Project } from '../project/project.ts';

const leftOut = new Set(['node_modules', '__pycache__', 'venv', 'agentcore.json', 'package-lock.json']);

/**
 * The files of a project that are deployed, relative to its folder and sorted: all but dot files (where secrets tend to be),
 * dependencies, caches, and what `exclude` names. Symbolic links are not followed.
 */
export async function projectFiles(project: Project): Promise<string[]> {
  const exclude = project.file.exclude ?? [];
  const found: string[] = [];
  const walk = async (below: string): Promise<void> => {
    for (const entry of await readdir(join(project.folder, below), { withFileTypes: true })) {
      const path = below ? `${below}/${entry.name}` : entry.name;
      if (entry.name.startsWith('.') || leftOut.has(entry.name)) continue;
      if (exclude.some((pattern) => matchesGlob(path, pattern.replace(/\/+$/, '')))) continue;
      if (entry.isDirectory()) await walk(path);
      else if (entry.isFile()) found.push(path);
    }
  };
  await walk('');
  return found.sort();
}
