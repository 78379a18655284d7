import { parentPort, workerData } from 'node:worker_threads';
import { createCoffeePlugin } from '../plugins/coffee.ts';
import type { CompileResult } from '../plugins/plugin.ts';

export interface CoffeeJob {
  /** Index of the next source to take, shared with the thread that started this one. */
  readonly position: Int32Array;
  readonly sources: readonly { readonly path: string; readonly text: string | null }[];
}

/** The sources that this thread took and that compiled. */
export type CoffeeAnswer = ReadonlyMap<string, CompileResult>;

const { position, sources } = workerData as CoffeeJob;
const plugin = createCoffeePlugin();
const answers = new Map<string, CompileResult>();
const read = (): never => {
  throw new Error('CoffeeScript includes nothing.');
};
for (let source = sources[Atomics.add(position, 0, 1)]; source; source = sources[Atomics.add(position, 0, 1)]) {
  if (source.text === null) continue;
  try {
    answers.set(source.path, await plugin.compile({ path: source.path, text: source.text, target: 'script', read }));
  } catch {
    // Its problem is made in the other thread, which can show the code around it.
  }
}
parentPort?.postMessage(answers);
