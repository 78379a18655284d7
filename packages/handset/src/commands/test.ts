import type { CommandContext, ExitStatus } from '../cli/context.ts';
import { plural } from '../cli/terminal.ts';
import { openProject } from '../project/project.ts';
import { runTests } from '../test-runner/run-tests.ts';

export interface TestCommandOptions {
  readonly grep?: string;
}

/** `handset test`: run the unit tests of a project. */
export async function testCommand(
  { grep }: TestCommandOptions,
  { cwd, terminal, signal }: CommandContext,
): Promise<ExitStatus> {
  const project = await openProject(cwd);
  const run = await runTests(project, {
    grep,
    signal,
    onResult: (result) => {
      terminal.emit({ event: 'test', ...result });
      const where = result.suite === 'app' ? '' : `${result.suite}: `;
      terminal.say(`${result.ok ? 'ok  ' : 'FAIL'} ${where}${result.name}`);
      if (!result.ok) terminal.say(`       ${result.message}${result.at ? `\n       at ${result.at}` : ''}`);
    },
    onLog: (text) => terminal.say(`     | ${text}`),
  });
  const failed = run.results.filter((result) => !result.ok).length;
  const ok = failed === 0 && run.problems.length === 0 && !signal.aborted;
  terminal.showProblems(run.problems);
  terminal.emit({ event: 'done', ok, passed: run.results.length - failed, failed, problems: run.problems });
  if (run.problems.length > 0) terminal.say('no test was run: the sources do not compile');
  else if (run.results.length === 0) terminal.say(grep === undefined ? NO_TESTS : `no test has "${grep}" in its name`);
  else terminal.say(`${plural(run.results.length - failed, 'test')} passed${failed ? `, ${failed} failed` : ''}`);
  return ok ? 0 : 1;
}

const NO_TESTS = 'there are no tests yet: write test(name, body) in app/name.test.coffee or app/name.test.js';
