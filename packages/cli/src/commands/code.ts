import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { text } from 'node:stream/consumers';
import { InvalidArgumentError } from '@commander-js/extra-typings';
import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { findConnection } from '../platform/connection.ts';
import { credentialsOf } from '../platform/credentials.ts';
import { patience } from '../terminal/progress.ts';
import { isInteractive, note, printJson, styled, type Terminal } from '../terminal/terminal.ts';
import { codePrompt } from './code-prompt.ts';
import { type CodeRunner, type Language, languages, runCode } from './code-run.ts';

export function codeCommand(terminal: Terminal) {
  return platformCommand('code', {
    summary: 'Run Python, JavaScript or TypeScript in an isolated session of the platform.',
    details:
      'Give the code as an argument, with --file, or pipe it in. --interactive asks for it line by line and keeps a history. Its output ' +
      'goes to stdout and stderr; pictures are saved, and their files are named. The session ends with the command.',
    examples: [
      { does: 'one line of Python', line: 'agentcore code "print(1)" --language python' },
      { does: 'a file, its language by its name', line: 'agentcore code --file chart.py' },
      { does: 'try things out', line: 'agentcore code --interactive' },
    ],
  })
    .argument('[code]', 'what to run')
    .option(
      '-l, --language <name>',
      `one of ${languages.join(', ')} (default: by the file's name, else python)`,
      language,
    )
    .option('-f, --file <path>', 'run what is in this file')
    .option('-i, --interactive', 'ask for code line by line; an empty line runs a block, Ctrl-D ends')
    .option('--interpreter <id>', 'code interpreter (default: aws.codeinterpreter.v1)')
    .option('--pictures <folder>', 'where pictures are saved (default: this folder)')
    .action(async (argument, options) => {
      const connection = await findConnection(terminal, options);
      const source = options.interactive ? undefined : await codeOf(terminal, argument, options.file);
      const chosen = options.language ?? languageOf(options.file);
      // Loaded here: the SDK costs a third of a second, which --help must not pay.
      const { CodeInterpreter } = await import('agentplatform/code-interpreter');
      await using interpreter = new CodeInterpreter(connection.region, {
        endpoint: connection.endpoint,
        credentials: credentialsOf(connection),
        maxAttempts: 1,
        ...(options.interpreter ? { identifier: options.interpreter } : {}),
      });
      const started = patience(
        terminal,
        'starting a session (the first one of a machine makes its image: a minute or two)',
      );
      try {
        // What is piped in is read from the first moment on; there nobody watches.
        if (source !== undefined || isInteractive(terminal)) await interpreter.start();
      } finally {
        started();
      }
      const runner: CodeRunner = {
        invoke: (args, more) => interpreter.invoke('executeCode', args, more),
        pictures: options.pictures ?? terminal.cwd,
      };
      if (source === undefined) return codePrompt(terminal, runner, chosen);
      const result = await runCode(terminal, runner, { language: chosen, code: source, quiet: options.json === true });
      if (options.json) printJson(terminal, result);
      for (const file of result.pictures) note(terminal, styled(terminal, 'stderr', 'dim', `saved ${file}`));
      if (result.isError) throw new CliError('agentFailed', 'The code failed.');
    });
}

function language(text: string): Language {
  const found = languages.find((name) => name === text);
  if (found) return found;
  throw new InvalidArgumentError(`It must be one of ${languages.join(', ')}.`);
}

function languageOf(file: string | undefined): Language {
  const byName: Record<string, Language> = { '.js': 'javascript', '.mjs': 'javascript', '.ts': 'typescript' };
  return byName[extname(file ?? '')] ?? 'python';
}

async function codeOf(terminal: Terminal, argument: string | undefined, file: string | undefined): Promise<string> {
  if (argument !== undefined && file !== undefined)
    throw new CliError('usage', 'Give either code or --file, not both.');
  if (argument !== undefined && argument !== '-') return argument;
  if (file !== undefined) {
    return readFile(file, 'utf8').catch((error: unknown) => {
      throw new CliError('usage', `${file} cannot be read.`, 'Check the path.', { cause: error });
    });
  }
  if (isInteractive(terminal) && argument === undefined)
    throw new CliError(
      'usage',
      'There is no code to run.',
      'Give it as an argument, with --file, or use --interactive.',
    );
  return text(terminal.stdin);
}
