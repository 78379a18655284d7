import type { Output } from './output.ts';
import type { PublicFolder } from './public-folder.ts';

/** The files of public/ in memory alone, for who serves them without writing them. */
export interface MemoryFolder extends PublicFolder {
  /** What was written last; empty before. */
  readonly outputs: ReadonlyMap<string, Output>;
}

export function createMemoryFolder(): MemoryFolder {
  let outputs: ReadonlyMap<string, Output> = new Map();
  return {
    get outputs() {
      return outputs;
    },
    write(next) {
      const before = outputs;
      outputs = next;
      const written = [...next].filter(([name, { hash }]) => before.get(name)?.hash !== hash).map(([name]) => name);
      const removed = [...before.keys()].filter((name) => !next.has(name));
      return { written, removed, problems: [] };
    },
  };
}
