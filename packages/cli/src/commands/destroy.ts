import { setTimeout as sleep } from 'node:timers/promises';
import type { BedrockAgentCoreControlClient } from '@aws-sdk/client-bedrock-agentcore-control';
import { confirm, isCancel } from '@clack/prompts';
import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { controlClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { resolveRuntime } from '../platform/runtimes.ts';
import { writeRecord } from '../project/deploy-state.ts';
import { runSteps } from '../terminal/progress.ts';
import { isInteractive, print, printJson, type Terminal } from '../terminal/terminal.ts';

export function destroyCommand(terminal: Terminal) {
  return platformCommand('destroy', {
    summary: 'Remove a deployed agent with its versions, endpoints and live sessions. Your files stay.',
    examples: [
      { does: 'remove the agent in this folder, after a question', line: 'agentcore destroy' },
      { does: 'remove an agent by name without a question', line: 'agentcore destroy --agent my_agent --yes' },
    ],
  })
    .option('-a, --agent <name>', 'agent by name, id or ARN (default: the one in this folder)')
    .option('-y, --yes', 'do not ask')
    .action(async (options) => {
      const connection = await findConnection(terminal, options);
      const runtime = await resolveRuntime(terminal, connection, options.agent);
      if (!options.yes) await askFirst(terminal, runtime.name);
      const client = await controlClient(connection);
      await runSteps(terminal, [
        { title: `Removing ${runtime.name}`, run: () => remove(client, runtime.id, terminal.signal) },
      ]);
      if (runtime.folder) await writeRecord(runtime.folder, connection, undefined);
      if (options.json) printJson(terminal, { agentRuntimeId: runtime.id, destroyed: true });
      else print(terminal, `${runtime.name} is removed.`);
    });
}

async function askFirst(terminal: Terminal, name: string): Promise<void> {
  if (!isInteractive(terminal)) {
    throw new CliError(
      'usage',
      `${name} is not removed, because there is no terminal to confirm it.`,
      'Confirm with --yes.',
    );
  }
  const message = `Remove ${name} with its versions, endpoints and live sessions?`;
  const answer = await confirm({ message, initialValue: false, input: terminal.stdin, output: terminal.stderr });
  if (isCancel(answer) || !answer) throw new CliError('interrupted', 'Nothing was removed.');
}

const patienceMs = 120_000;

async function remove(
  client: BedrockAgentCoreControlClient,
  agentRuntimeId: string,
  signal: AbortSignal,
): Promise<string> {
  const { DeleteAgentRuntimeCommand, GetAgentRuntimeCommand } = await import(
    '@aws-sdk/client-bedrock-agentcore-control'
  );
  await client.send(new DeleteAgentRuntimeCommand({ agentRuntimeId }));
  const end = performance.now() + patienceMs;
  for (let wait = 100; performance.now() < end; wait = Math.min(wait * 1.5, 2000)) {
    try {
      const { status, failureReason } = await client.send(new GetAgentRuntimeCommand({ agentRuntimeId }), {
        abortSignal: signal,
      });
      if (status === 'DELETE_FAILED')
        throw new CliError('failure', `It could not be removed: ${failureReason ?? status}`);
    } catch (error) {
      if (error instanceof Error && error.name === 'ResourceNotFoundException') return 'done';
      throw error;
    }
    await sleep(wait, undefined, { signal });
  }
  throw new CliError('failure', 'It is still being removed after two minutes.', 'Look again with: agentcore list');
}
