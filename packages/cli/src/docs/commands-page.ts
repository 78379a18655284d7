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
    '`npm run docs:update` makes this page from the commands. Every command has `--help`, too: `agentcore deploy --help`.',
    'Results go to stdout. Progress and everything else go to stderr. With `--json` the result is one JSON document, or one for each line of ' +
      '`logs`. A failure is then one JSON line on stderr: `{"error":{"reason","message","remedy","exitStatus"}}`. There are no colours ' +
      'in a pipe, or with `NO_COLOR`.',
    'A command finds the platform by the first of these: `--endpoint`; `AWS_ENDPOINT_URL_BEDROCK_AGENTCORE` or `AWS_ENDPOINT_URL`; the platform to ' +
      'which the credentials file in `AWS_SHARED_CREDENTIALS_FILE` belongs; `.agentplatform/connection.json` ' +
      'in this folder, a folder above, or the home folder. It signs with `--profile`, with keys in the environment, or with the keys of that platform.',
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
