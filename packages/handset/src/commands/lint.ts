import type { CommandContext, ExitStatus } from '../cli/context.ts';
import { plural } from '../cli/terminal.ts';
import { lintProject } from '../lint/lint.ts';
import { openProject } from '../project/project.ts';

/** `handset lint`: say what the devices will not bear; errors give status 1, warnings 0. */
export async function lintCommand(_options: object, { cwd, terminal }: CommandContext): Promise<ExitStatus> {
  const problems = await lintProject(await openProject(cwd));
  const errors = problems.filter((p) => p.severity === 'error').length;
  const warnings = problems.length - errors;
  terminal.showProblems(problems);
  terminal.emit({ ok: errors === 0, errors, warnings, problems });
  terminal.say(
    problems.length === 0 ? 'nothing to complain about' : `${plural(errors, 'error')}, ${plural(warnings, 'warning')}`,
  );
  return errors === 0 ? 0 : 1;
}
