import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import { examplesOf } from '../command.ts';
import { exitCodes } from '../exit-codes.ts';
import { createProgram } from '../program.ts';

// No command runs here, so nothing of the outside is used.
const nowhere = {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: {},
  cwd: '/',
  home: '/',
  signal: new AbortController().signal,
};

/** The text of docs/cli.md, made from the command tree and the table of exit statuses. */
export function commandsPage(): string {
  const program = createProgram(nowhere);
  const commands = program.commands.flatMap((command) => leaves(command, 'agentcore'));
  return [
    '# The command line: agentcore',
    'Made from the commands themselves by `npm run docs:update`. Every command also explains itself: `agentcore deploy --help`.',
    'Results go to stdout, progress and everything else to stderr. With `--json` the result is one JSON document (one a line for ' +
      '`logs`), and a failure is one JSON line on stderr: `{"error":{"reason","message","remedy","exitStatus"}}`. Colours are left out ' +
      'in a pipe and with `NO_COLOR`.',
    'Which platform: `--endpoint`, else `AWS_ENDPOINT_URL_BEDROCK_AGENTCORE` or `AWS_ENDPOINT_URL`, else the platform whose credentials file ' +
      '`AWS_SHARED_CREDENTIALS_FILE` names, else `.agentplatform/connection.json` ' +
      'in this folder, one above it, or the home folder. Which keys: those of that file, those in the environment, or `--profile`.',
    '## Exit status',
    table(
      ['status', 'meaning'],
      Object.values(exitCodes).map(({ status, meaning }) => [String(status), meaning]),
    ),
    '## Commands',
    table(
      ['command', 'what it does'],
      commands.map(({ path, command }) => [`[${path}](#${anchor(path)})`, command.summary()]),
    ),
    ...commands.map(section),
    '',
  ]
    .join('\n\n')
    .trimEnd()
    .concat('\n');
}

interface Leaf {
  path: string;
  command: CommandUnknownOpts;
}

function leaves(command: CommandUnknownOpts, before: string): Leaf[] {
  const path = `${before} ${command.name()}`;
  if (command.commands.length === 0) return [{ path, command }];
  return command.commands.flatMap((member) => leaves(member, path));
}

function section({ path, command }: Leaf): string {
  const parameters = [
    ...command.registeredArguments.map((argument) => {
      const name = argument.required ? `<${argument.name()}>` : `[${argument.name()}]`;
      return [code(name), argument.description];
    }),
    ...command.options.map((option) => [code(option.flags), `${option.description}${choicesOf(option.argChoices)}`]),
  ];
  const examples = examplesOf(command).map(({ does, line }) => `# ${does}\n${line}`);
  return [
    `### ${path}`,
    command.description(),
    table(['argument or option', ''], parameters),
    ...(examples.length > 0 ? [`\`\`\`sh\n${examples.join('\n\n')}\n\`\`\``] : []),
  ].join('\n\n');
}

function choicesOf(choices: readonly string[] | undefined): string {
  return choices ? ` (${choices.join(', ')})` : '';
}

function table(heading: string[], rows: string[][]): string {
  const line = (cells: string[]): string => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(heading), line(heading.map(() => '---')), ...rows.map(line)].join('\n');
}

function code(text: string): string {
  return `\`${text}\``;
}

function anchor(path: string): string {
  return path.replaceAll(' ', '-');
}
