import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { loadPlugins, type PluginRegistry } from '../plugins/registry.ts';
import { ProblemError } from '../problem.ts';
import { readSettings, type Settings } from './settings.ts';

/** A handset project on this machine. */
export interface Project {
  readonly root: string;
  /** The name in package.json, or the folder's. */
  readonly name: string;
  readonly settings: Settings;
  readonly plugins: PluginRegistry;
}

/** Open the project that holds `folder`: the nearest folder upwards with an app/ in it. Throws `project-missing`. */
export async function openProject(folder: string): Promise<Project> {
  const root = findRoot(path.resolve(folder));
  const settings = readSettings(root);
  return { root, name: packageName(root), settings, plugins: await loadPlugins(root, settings.plugins) };
}

function findRoot(start: string): string {
  for (let folder = start; ; folder = path.dirname(folder)) {
    const isProject =
      existsSync(path.join(folder, 'app')) && (existsSync(path.join(folder, 'app', 'assets')) || folder === start);
    if (isProject) return folder;
    if (folder === path.dirname(folder)) {
      throw new ProblemError('project-missing', { message: `There is no app/ folder in ${start} or above it.` });
    }
  }
}

function packageName(root: string): string {
  try {
    const value: unknown = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
    const name = typeof value === 'object' && value !== null && 'name' in value ? value.name : undefined;
    if (typeof name === 'string' && /^[\w@/.-]{1,214}$/.test(name)) return name.replace(/^@[^/]*\//, '');
  } catch {
    // No package.json: the folder names the project.
  }
  return path.basename(root);
}
