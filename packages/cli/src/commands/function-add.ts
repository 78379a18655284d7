import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { codeBucket, uploadZip } from '../deploy/upload-code.ts';
import { packageFunction } from '../package/package-function.ts';
import { functionClient, objectClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { putFunction } from '../platform/functions.ts';
import { note, type Terminal, typed } from '../terminal/terminal.ts';
import { printDone } from './iam-request.ts';

/** `agentcore add function`. */
export function addFunctionCommand(terminal: Terminal) {
  return platformCommand('function', {
    summary: 'Add a function: code that runs for each event, in a sandbox of its own. One of that name is updated.',
    details:
      'A folder with index.mjs or index.js runs on Node.js, with the handler index.handler. A folder with lambda_function.py runs on Python, with the handler lambda_function.lambda_handler. Dot files are left out.',
    examples: [
      { does: 'the code in a folder', line: 'agentcore add function words --path ./words' },
      {
        does: 'another handler, and a variable',
        line: 'agentcore add function words --path ./words --runtime python3.12 --handler app.main --env LANGUAGE=en',
      },
      {
        does: 'a zip',
        line: 'agentcore add function words --path words.zip --runtime nodejs24.x --handler index.handler',
      },
    ],
  })
    .argument('<name>', 'letters, digits, - and _')
    .requiredOption('--path <path>', 'folder or zip of the code, with its dependencies')
    .option('--runtime <runtime>', 'such as nodejs24.x or python3.12')
    .option('--handler <file.name>', 'what is called for each event')
    .option('--env <key=value...>', 'environment variables; they replace all earlier ones')
    .option('--timeout <seconds>', 'how long one event may take (default: 3)')
    .option('--memory <mib>', 'how much memory it has (default: 128)')
    .option('--description <text>', 'what it is for')
    .option('--role <arn>', 'the role that it runs as (default: the default role)')
    .action(async (name, options) => {
      const connection = await findConnection(terminal, options);
      await using code = await packageFunction(terminal.cwd, options.path, terminal.signal);
      const { runtime = code.guess?.runtime, handler = code.guess?.handler } = options;
      if (runtime === undefined || handler === undefined)
        throw new CliError(
          'usage',
          `${options.path} does not say how its code is run.`,
          'Say so: --runtime nodejs24.x --handler index.handler',
        );
      const { key } = await uploadZip(await objectClient(connection), `functions/${name}`, code, terminal.signal);
      const wish = {
        // The platform says which of them it can serve.
        Runtime: runtime as 'nodejs24.x',
        Handler: handler,
        Role: options.role ?? connection.defaultRoleArn,
        Timeout: numberOf('--timeout', options.timeout),
        MemorySize: numberOf('--memory', options.memory),
        Description: options.description,
        ...(options.env && { Environment: { Variables: variablesOf(options.env) } }),
      };
      const where = { S3Bucket: codeBucket, S3Key: key };
      const made = await putFunction(await functionClient(connection), name, wish, where);
      printDone(terminal, options.json, made, `${name} is ${made.made ? 'added' : 'updated'}.\n${made.FunctionArn}`);
      if (!options.json && made.made)
        note(terminal, typed(terminal, `Try it: agentcore function invoke ${name} '{"key": "value"}'`));
    });
}

function numberOf(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new CliError('usage', `${option} is a whole number, not ${text}.`);
}

function variablesOf(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=');
      if (at <= 0) throw new CliError('usage', `--env takes KEY=VALUE, not ${pair}.`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}
