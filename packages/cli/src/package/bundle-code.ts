import { extname, join } from 'node:path';
import type { BuildFailure, Message } from 'esbuild';
import { CliError } from '../cli-error.ts';
import type { Project } from '../project/project.ts';
import { loadingPackages } from './loading-packages.ts';

// Packages written for CommonJS need these names. On the global object they do not clash with names in the agent's code.
const banner = `import { createRequire as agentcoreCreateRequire } from 'node:module';
globalThis.require ??= agentcoreCreateRequire(import.meta.url);
globalThis.__filename ??= import.meta.filename;
globalThis.__dirname ??= import.meta.dirname;`;

export interface Bundle {
  /** The module, relative to the stage. */
  entryPoint: string;
  /** Packages that are not in the bundle and must be beside it: those in `bundle.external`, and those that load other packages at run time. */
  external: string[];
}

/**
 * Makes one ES module of a TypeScript or JavaScript agent and the packages it uses, at the entry point's own place in `stage`.
 * Rejects with a `CliError` (usage) that names file and line.
 */
export async function bundleCode({ folder, file }: Project, stage: string): Promise<Bundle> {
  const entry = file.entrypoint ?? '';
  const entryPoint = `${entry.slice(0, entry.length - extname(entry).length)}.mjs`;
  const { build } = await import('esbuild');
  const bundle = (external: string[]) =>
    build({
      absWorkingDir: folder,
      entryPoints: [entry],
      outfile: join(stage, entryPoint),
      allowOverwrite: true,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node22',
      external,
      banner: { js: banner },
      metafile: true,
      logLevel: 'silent',
    });
  const named = file.bundle?.external ?? [];
  try {
    const { metafile } = await bundle(named);
    const found = await loadingPackages(folder, metafile);
    const external = [...named, ...found];
    if (found.length > 0) await bundle(external);
    return { entryPoint, external };
  } catch (error) {
    throw explainBuild(error as BuildFailure);
  }
}

function explainBuild(failure: BuildFailure): unknown {
  const [first] = failure.errors ?? [];
  if (!first) return failure;
  const shown = failure.errors.slice(0, 5).map(lineOf).join('\n');
  return new CliError('usage', `The agent cannot be built:\n${shown}`, remedyFor(first), { cause: failure });
}

function lineOf({ text, location }: Message): string {
  return location ? `  ${location.file}:${location.line}:${location.column + 1}: ${text}` : `  ${text}`;
}

function remedyFor({ text }: Message): string | undefined {
  if (/^Could not resolve "[^./]/.test(text)) return 'Install the packages first: npm install';
  if (text.includes('".node" files')) {
    const name = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/.exec(text)?.[1] ?? 'the-package';
    return `That package holds native code. Ship it as it is: add "bundle": { "external": ["${name}"] } to agentcore.json.`;
  }
  return undefined;
}
