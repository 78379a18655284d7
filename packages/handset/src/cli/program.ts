import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { ProblemError, problem, problemOf } from '../problem.ts';
import { COMMANDS, type CommandSpec, type OptionSpec } from './commands.ts';
import type { CommandContext, ExitStatus } from './context.ts';
import { createTerminal, type TerminalStreams } from './terminal.ts';

export interface CliSurroundings extends TerminalStreams {
  readonly cwd: string;
  readonly signal: AbortSignal;
  readonly version: string;
}

/** Run one command line (without `node` and the script) and return its exit status; never throws. */
export async function runCli(argv: readonly string[], around: CliSurroundings): Promise<ExitStatus> {
  let status: ExitStatus = 0;
  const terminal = createTerminal(around, argv.includes('--json'));
  const context: CommandContext = { cwd: around.cwd, terminal, signal: around.signal, env: around.env };
  const program = new Command('handset')
    .description('Build, watch, preview and pack web apps for phones that run no JavaScript.')
    .version(around.version)
    .addHelpText(
      'after',
      `\nExamples:\n  npx handset new my-app\n  npx handset watch --server\n  npx handset <command> --help`,
    );
  for (const spec of COMMANDS) {
    program.addCommand(
      makeCommand(spec, async (options, args) => {
        status = await spec.run(options, args, context);
      }),
    );
  }
  for (const command of [program, ...program.commands]) {
    command.exitOverride().configureOutput({
      writeOut: (text) => around.stdout.write(text),
      writeErr: (text) => around.stderr.write(text),
    });
  }
  try {
    await program.parseAsync([...argv], { from: 'user' });
    return status;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      // People have read it on stderr.
      if (terminal.json) terminal.fail(problem('usage', { message: error.message.replace(/^error: /, '') }));
      return 2;
    }
    terminal.fail(problemOf(error));
    return error instanceof ProblemError && error.problem.code === 'usage' ? 2 : 1;
  }
}

function makeCommand(spec: CommandSpec, run: (options: object, args: readonly string[]) => Promise<void>): Command {
  const command = new Command(spec.name).description(spec.summary).showSuggestionAfterError();
  for (const { name, summary, required } of spec.args ?? [])
    command.argument(required ? `<${name}>` : `[${name}]`, summary);
  for (const option of spec.options) command.addOption(makeOption(option));
  command.addHelpText('after', `\nExamples:\n${spec.examples.map((line) => `  ${line}`).join('\n')}`);
  command.action(async (...given: unknown[]) => {
    const args = given.slice(0, (spec.args ?? []).length).map((value) => (typeof value === 'string' ? value : ''));
    await run(command.opts(), args);
  });
  return command;
}

function makeOption({ flags, summary, number, choices }: OptionSpec): Option {
  const option = new Option(flags, summary);
  if (choices) option.choices([...choices]);
  if (number) {
    option.argParser((text) => {
      const value = Number(text);
      if (!/^\d+$/.test(text) || value < number.min || value > number.max) {
        throw new InvalidArgumentError(`It must be a whole number from ${number.min} to ${number.max}.`);
      }
      return value;
    });
  }
  return option;
}
