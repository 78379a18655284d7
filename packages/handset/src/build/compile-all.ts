import { availableParallelism, loadavg } from 'node:os';
import { Worker } from 'node:worker_threads';
import { COFFEE_PLUGIN_NAME } from '../plugins/coffee.ts';
import type { CompileTarget } from '../plugins/plugin.ts';
import type { PluginRegistry } from '../plugins/registry.ts';
import type { CoffeeAnswer, CoffeeJob } from './coffee-worker.ts';
import { type Compiled, compileSource } from './compiler.ts';
import type { SourceStore } from './source-store.ts';

export interface CompileJob {
  readonly name: string;
  readonly target: CompileTarget;
}

/** From this many CoffeeScript files on, a second thread pays for its own start. */
const WORTH_A_THREAD = 8;

/**
 * Compile sources. When there are many, a second thread takes CoffeeScript files from the same list while this one does
 * the templates first: neither waits for the other, and which thread compiles a file makes no difference to the result.
 */
export async function compileAll(
  jobs: readonly CompileJob[],
  plugins: PluginRegistry,
  store: SourceStore,
  mayHelp: () => boolean = hasFreeCore,
): Promise<Map<string, Compiled>> {
  const results = new Map<string, Compiled>();
  const coffee: CompileJob[] = [];
  const others: CompileJob[] = [];
  for (const job of jobs) (plugins.find(job.name)?.name === COFFEE_PLUGIN_NAME ? coffee : others).push(job);
  const helper = coffee.length >= WORTH_A_THREAD && mayHelp() ? startHelper(coffee, store) : undefined;
  const compile = async ({ name, target }: CompileJob): Promise<void> => {
    results.set(name, await compileSource(name, target, plugins, store));
  };
  for (const job of others) await compile(job);
  if (!helper) for (const job of coffee) await compile(job);
  else {
    for (let job = helper.next(); job; job = helper.next()) await compile(job);
    const answers = await helper.answers;
    // What the thread did not answer, because it could not start or a source did not compile, is done here.
    for (const job of coffee) {
      const result = answers.get(job.name);
      if (result) results.set(job.name, { ok: true, result, dependencies: new Set() });
      else if (!results.has(job.name)) await compile(job);
    }
  }
  return results;
}

/** On a machine that is busy already, a second thread only makes more work (Windows tells no load and counts as free). */
function hasFreeCore(): boolean {
  return (loadavg()[0] ?? 0) < availableParallelism() - 0.5;
}

function startHelper(jobs: readonly CompileJob[], store: SourceStore) {
  // The next file to be taken, by whichever thread is free.
  const position = new Int32Array(new SharedArrayBuffer(4));
  const texts = jobs.map(({ name }) => textOf(name, store));
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const data: CoffeeJob = { position, sources: jobs.map(({ name }, i) => ({ path: name, text: texts[i] ?? null })) };
  const worker = new Worker(new URL(`./coffee-worker.${extension}`, import.meta.url), { workerData: data });
  const answers = new Promise<CoffeeAnswer>((resolve) => {
    worker.once('message', resolve);
    worker.once('error', () => resolve(new Map()));
    worker.once('exit', () => resolve(new Map()));
  });
  return { next: () => jobs[Atomics.add(position, 0, 1)], answers };
}

/** The text, or undefined for a source that cannot be read: its problem is made in this thread. */
function textOf(name: string, store: SourceStore): string | undefined {
  try {
    return store.text(name);
  } catch {
    return undefined;
  }
}
