/** A runtime of functions. */
export interface FunctionRuntime {
  /** As the wire names it: `python3.12`. */
  name: string;
  /** The runtime of code (`kernel/images/code`) that it is. */
  code: string;
  /** Which host (`images/functions`) runs handlers in it. */
  host: 'node' | 'python';
}

const RUNTIMES: readonly FunctionRuntime[] = [
  ...['22', '24'].map((major) => ({ name: `nodejs${major}.x`, code: `NODE_${major}`, host: 'node' as const })),
  ...['10', '11', '12', '13', '14'].map((minor) => ({
    ...{ name: `python3.${minor}`, code: `PYTHON_3_${minor}`, host: 'python' as const },
  })),
];

/** Names of all runtimes. */
export const functionRuntimes: readonly string[] = RUNTIMES.map(({ name }) => name);

/** The runtime of a name; undefined for one that is not served. */
export function functionRuntime(name: string): FunctionRuntime | undefined {
  return RUNTIMES.find((runtime) => runtime.name === name);
}
