import { join, relative } from 'node:path';
import { Option } from '@commander-js/extra-typings';
import { CliError } from '../cli-error.ts';
import { command } from '../command.ts';
import { createProject, nameProblem, type Template, templates } from '../project/create-project.ts';
import { runtimeName } from '../project/project.ts';
import { installPackages, vendorSdk } from '../project/vendor-sdk.ts';
import { askChoice, askText } from '../terminal/ask.ts';
import { runSteps } from '../terminal/progress.ts';
import { isInteractive, print, printJson, programName, type Terminal, typed } from '../terminal/terminal.ts';

const names = templates.map(({ value }) => value);

export function createCommand(terminal: Terminal) {
  return command('create', {
    summary: 'Make a new agent in a folder of its own.',
    details:
      'Asks for what you leave out. The folder holds agentcore.json, the code, and a README with the next steps.',
    examples: [
      { does: 'answer two questions', line: 'agentcore create' },
      { does: 'ask nothing', line: 'agentcore create my-agent --language python --yes' },
    ],
  })
    .argument('[name]', 'name of the agent and of its folder')
    .addOption(new Option('-l, --language <language>', 'what to begin with').choices(names))
    .option('-y, --yes', 'ask nothing; the defaults are my-agent and typescript')
    .option('--no-install', 'do not run npm install (TypeScript)')
    .action(async (argument, options) => {
      const name = argument ?? (await chooseName(terminal, options.yes));
      const problem = nameProblem(name);
      if (problem) throw new CliError('usage', `${JSON.stringify(name)} cannot be the name. ${problem}`);
      const language = options.language ?? (await chooseLanguage(terminal, options.yes));
      const folder = join(terminal.cwd, name);
      await write(terminal, folder, language, options.install);
      if (options.json) return printJson(terminal, { name: runtimeName(name), language, folder });
      const next = language === 'containerfile' ? ['agentcore deploy'] : ['agentcore dev', 'agentcore deploy'];
      print(
        terminal,
        `\nMade ${relative(terminal.cwd, folder)}/. Next:\n\n  cd ${name}\n${next.map((line) => `  ${typed(terminal, line)}`).join('\n')}`,
      );
    });
}

async function write(terminal: Terminal, folder: string, language: Template, install: boolean): Promise<void> {
  await runSteps(terminal, [
    {
      title: 'Writing files',
      run: async () => (await createProject(folder, language, programName(terminal))).join(', '),
    },
    ...(language === 'typescript'
      ? [
          {
            title: 'Packing the agentplatform package into vendor/',
            run: () => done(vendorSdk(folder, terminal.signal)),
          },
        ]
      : []),
    ...(language === 'typescript' && install
      ? [{ title: 'Installing packages', run: () => done(installPackages(folder, terminal.signal)) }]
      : []),
  ]);
}

async function done(work: Promise<void>): Promise<string> {
  await work;
  return 'done';
}

async function chooseName(terminal: Terminal, yes: boolean | undefined): Promise<string> {
  if (yes) return 'my-agent';
  if (!isInteractive(terminal))
    throw new CliError('usage', 'What shall it be called?', 'Name it: agentcore create my-agent --yes');
  return askText(terminal, 'What shall the agent be called?', 'my-agent', nameProblem);
}

async function chooseLanguage(terminal: Terminal, yes: boolean | undefined): Promise<Template> {
  if (yes) return 'typescript';
  if (!isInteractive(terminal)) {
    throw new CliError('usage', 'Which language?', `Say --language ${names.join('|')}, or --yes for typescript.`);
  }
  const answer = await askChoice(terminal, 'What shall it begin with?', [...templates]);
  return names.find((name) => name === answer) ?? 'typescript';
}
