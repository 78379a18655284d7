import { buffer } from 'node:stream/consumers';
import { CliError } from '../cli-error.ts';
import { commandGroup, platformCommand } from '../command.ts';
import { adminFetch, segment } from '../platform/admin.ts';
import { functionClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { listFunctions } from '../platform/functions.ts';
import { harmless, note, print, type Terminal, typed } from '../terminal/terminal.ts';
import { printDone, printList } from './iam-request.ts';
import { printLog } from './logs.ts';

/** Code that runs for each event. */
export function functionCommand(terminal: Terminal) {
  return commandGroup('function', 'Look at functions, call them, read what they print.', [
    listCommand(terminal),
    invokeCommand(terminal),
    logsCommand(terminal),
    removeCommand(terminal),
  ]);
}

function listCommand(terminal: Terminal) {
  return platformCommand('list', {
    summary: 'List functions.',
    examples: [{ does: 'names, runtimes and handlers', line: 'agentcore function list' }],
  }).action(async (options) => {
    const functions = await listFunctions(await functionClient(await findConnection(terminal, options)));
    const none = typed(terminal, 'There is no function yet. Make one: agentcore add function NAME --path FOLDER');
    const fields = ['FunctionName', 'Runtime', 'Handler', 'LastModified'];
    printList(terminal, options.json, { functions }, { member: 'functions', fields, none });
  });
}

function invokeCommand(terminal: Terminal) {
  return platformCommand('invoke', {
    summary: 'Give a function one event, and print what it returns.',
    details:
      'The event is JSON; - reads it from standard input. A failure of the function ends the command with status 6.',
    examples: [
      { does: 'with an event', line: `agentcore function invoke words '{"text": "hello"}'` },
      { does: 'without one', line: 'agentcore function invoke words' },
    ],
  })
    .argument('<name>', 'name or ARN')
    .argument('[event]', 'JSON')
    .action(async (FunctionName, event, options) => {
      const client = await functionClient(await findConnection(terminal, options));
      const { InvokeCommand } = await import('@aws-sdk/client-lambda');
      const Payload = event === '-' ? await buffer(terminal.stdin) : Buffer.from(event ?? '{}');
      const answer = await client.send(new InvokeCommand({ FunctionName, Payload }), { abortSignal: terminal.signal });
      print(terminal, harmless(answer.Payload?.transformToString() ?? ''));
      if (answer.FunctionError !== undefined)
        throw new CliError(
          'agentFailed',
          `The function ${FunctionName} failed.`,
          `See what it printed: agentcore function logs ${FunctionName}`,
        );
    });
}

function logsCommand(terminal: Terminal) {
  return platformCommand('logs', {
    summary: 'Show what a function printed, sandbox by sandbox.',
    examples: [
      { does: 'what it printed', line: 'agentcore function logs words' },
      { does: 'the same, and what it prints from now on, until Ctrl-C', line: 'agentcore function logs words -f' },
    ],
  })
    .argument('<name>', 'its name')
    .option('-f, --follow', 'stay and show new lines as they come')
    .option('--no-times', 'leave out when each line was printed')
    .action(async (name, options) => {
      const response = await adminFetch(await findConnection(terminal, options), {
        path: `/functions/${segment(name)}/logs`,
        query: options.follow ? { follow: '1' } : {},
        signal: terminal.signal,
      });
      const any = await printLog(terminal, response, options);
      if (!any && !options.follow && !options.json) note(terminal, 'Nothing was printed yet.');
    });
}

function removeCommand(terminal: Terminal) {
  return platformCommand('remove', {
    summary: 'Remove a function.',
    examples: [{ does: 'it, and its sandboxes once their events are done', line: 'agentcore function remove words' }],
  })
    .argument('<name>', 'name or ARN')
    .action(async (FunctionName, options) => {
      const client = await functionClient(await findConnection(terminal, options));
      const { DeleteFunctionCommand } = await import('@aws-sdk/client-lambda');
      await client.send(new DeleteFunctionCommand({ FunctionName }));
      printDone(terminal, options.json, { FunctionName, removed: true }, `The function ${FunctionName} is removed.`);
    });
}
