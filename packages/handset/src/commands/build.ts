import { buildOnce } from '../build/build-once.ts';
import type { CommandContext, ExitStatus } from '../cli/context.ts';
import { bytes, plural } from '../cli/terminal.ts';
import { openProject } from '../project/project.ts';

export interface BuildOptions {
  readonly production?: boolean;
  readonly clean?: boolean;
}

/** `handset build`: assemble public/ once. */
export async function buildCommand(options: BuildOptions, { cwd, terminal }: CommandContext): Promise<ExitStatus> {
  const start = performance.now();
  const project = await openProject(cwd);
  const { assembly, written } = await buildOnce(project, {
    production: options.production ?? false,
    clean: options.clean ?? false,
  });
  const milliseconds = Math.round(performance.now() - start);
  const problems = [...assembly.problems, ...(written?.problems ?? [])];
  terminal.showProblems(problems);
  const ok = assembly.outputs !== undefined;
  terminal.emit({
    ok,
    milliseconds,
    compiled: assembly.compiled,
    outputs: [...(assembly.outputs?.keys() ?? [])],
    written: written?.written ?? [],
    removed: written?.removed ?? [],
    problems,
  });
  if (!assembly.outputs) {
    terminal.say(
      `not compiled: ${plural(problems.filter((p) => p.severity === 'error').length, 'error')}; public/ is unchanged`,
    );
    return 1;
  }
  const size = [...assembly.outputs.values()].reduce((sum, output) => sum + output.read().length, 0);
  terminal.say(
    `compiled in ${milliseconds}ms: ${plural(assembly.compiled, 'source')}, ${plural(assembly.outputs.size, 'file')} (${bytes(size)}) in public/`,
  );
  return 0;
}
