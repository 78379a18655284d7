import { pathToFileURL } from 'node:url';
import { ProblemError } from '../problem.ts';
import { extensionOf, projectPath } from '../project/paths.ts';
import { createCoffeePlugin } from './coffee.ts';
import { createCssPlugin } from './css.ts';
import { createJavaScriptPlugin } from './javascript.ts';
import { importModule } from './load-script.ts';
import type { CompilePlugin } from './plugin.ts';
import { createPugPlugin } from './pug.ts';

/** The languages of a project, by file extension. */
export interface PluginRegistry {
  /** The plugin for a source of this name, or undefined if no language has its extension. */
  find(name: string): CompilePlugin | undefined;
  /** Plugins whose results depend on their request alone, so that they may be kept. */
  readonly builtIn: ReadonlySet<CompilePlugin>;
}

/** Load a project's own plugin files, then the built-in languages; a project's plugin wins over a built-in one. */
export async function loadPlugins(root: string, files: readonly string[]): Promise<PluginRegistry> {
  const own = await Promise.all(files.map((file) => loadPlugin(root, file)));
  const [coffee, pug] = [createCoffeePlugin(), createPugPlugin()];
  return createRegistry([...own, coffee, createJavaScriptPlugin(), createCssPlugin(), pug], [coffee, pug]);
}

/** A registry in which the earlier plugin of two with the same extension wins. */
export function createRegistry(
  plugins: readonly CompilePlugin[],
  builtIn: readonly CompilePlugin[] = [],
): PluginRegistry {
  const byExtension = new Map<string, CompilePlugin>();
  for (const plugin of plugins) {
    for (const extension of plugin.extensions) {
      if (!byExtension.has(extension)) byExtension.set(extension, plugin);
    }
  }
  return { find: (name) => byExtension.get(extensionOf(name)), builtIn: new Set(builtIn) };
}

async function loadPlugin(root: string, file: string): Promise<CompilePlugin> {
  let module: unknown;
  try {
    module = await importModule(pathToFileURL(projectPath(root, file)).href);
  } catch (error) {
    throw new ProblemError('plugin-invalid', { file, message: `The plugin cannot be loaded: ${messageOf(error)}.` });
  }
  const plugin = (module as { plugin?: unknown }).plugin;
  if (!isPlugin(plugin)) {
    throw new ProblemError('plugin-invalid', { file, message: 'The file exports no usable `plugin`.' });
  }
  return plugin;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const TARGETS = ['script', 'template', 'page', 'style'];

function isPlugin(value: unknown): value is CompilePlugin {
  if (typeof value !== 'object' || value === null) return false;
  const plugin = value as Record<string, unknown>;
  return (
    typeof plugin.name === 'string' &&
    Array.isArray(plugin.extensions) &&
    plugin.extensions.every((e: unknown) => typeof e === 'string' && /^\.[a-z0-9]+$/.test(e)) &&
    Array.isArray(plugin.targets) &&
    plugin.targets.every((t: unknown) => TARGETS.includes(String(t))) &&
    typeof plugin.compile === 'function'
  );
}
