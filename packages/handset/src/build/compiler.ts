import { codeFrame } from '../code-frame.ts';
import type { CompileResult, CompileTarget } from '../plugins/plugin.ts';
import type { PluginRegistry } from '../plugins/registry.ts';
import { type Problem, ProblemError, problem } from '../problem.ts';
import type { SourceStore } from './source-store.ts';

export interface CompileJob {
  readonly name: string;
  readonly target: CompileTarget;
}

/** What became of one source: its output or its fault, and what both depend on. */
export type Compiled = { readonly target: CompileTarget; readonly dependencies: ReadonlySet<string> } & (
  | { readonly ok: true; readonly result: CompileResult }
  | { readonly ok: false; readonly problem: Problem }
);

/** Compile one source by the plugin of its extension; never throws. */
export async function compileSource(
  path: string,
  target: CompileTarget,
  plugins: PluginRegistry,
  store: SourceStore,
): Promise<Compiled> {
  const dependencies = new Set<string>();
  try {
    const plugin = plugins.find(path);
    if (!plugin) throw new ProblemError('compile-failed', { file: path, message: 'No language has this extension.' });
    const read = (name: string): string => {
      dependencies.add(name);
      return store.text(name);
    };
    const result = await plugin.compile({ path, text: store.text(path), target, read });
    for (const name of result.dependencies ?? []) dependencies.add(name);
    return { ok: true, target, result, dependencies };
  } catch (error) {
    return { ok: false, target, problem: withFrame(faultOf(error, path), store), dependencies };
  }
}

function faultOf(error: unknown, path: string): Problem {
  if (error instanceof ProblemError) return error.problem;
  const message = error instanceof Error ? error.message : String(error);
  const { line, column } = (typeof error === 'object' ? error : undefined) as { line?: unknown; column?: unknown };
  return problem('compile-failed', { file: path, message, line: asPosition(line), column: asPosition(column) });
}

function asPosition(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : undefined;
}

/** A fault with the lines of its source around it, if it has a line there. */
export function withFrame(fault: Problem, store: SourceStore): Problem {
  if (fault.frame !== undefined || fault.line === undefined || !store.has(fault.file)) return fault;
  try {
    return { ...fault, frame: codeFrame(store.text(fault.file), fault.line, fault.column) };
  } catch {
    return fault;
  }
}
