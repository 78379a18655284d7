import { setTimeout as sleep } from 'node:timers/promises';
import type { BedrockAgentCoreControlClient, GetAgentRuntimeResponse } from '@aws-sdk/client-bedrock-agentcore-control';
import { CliError } from '../cli-error.ts';
import { runtimeByName } from '../platform/runtimes.ts';
import type { DesiredRuntime } from './desired-runtime.ts';

/** The runtime that is deployed under that id, else under that name; undefined when there is neither. */
export async function currentRuntime(
  client: BedrockAgentCoreControlClient,
  id: string | undefined,
  name: string,
): Promise<GetAgentRuntimeResponse | undefined> {
  const { GetAgentRuntimeCommand } = await import('@aws-sdk/client-bedrock-agentcore-control');
  const get = (agentRuntimeId: string): Promise<GetAgentRuntimeResponse | undefined> =>
    client.send(new GetAgentRuntimeCommand({ agentRuntimeId })).catch((error: unknown) => {
      if (error instanceof Error && error.name === 'ResourceNotFoundException') return undefined;
      throw error;
    });
  const known = id === undefined ? undefined : await get(id);
  if (known && known.status !== 'DELETING') return known;
  const named = await runtimeByName(client, name);
  return named?.agentRuntimeId ? get(named.agentRuntimeId) : undefined;
}

/** Makes the runtime, or its next version, and resolves with its id. */
export async function applyRuntime(
  client: BedrockAgentCoreControlClient,
  live: GetAgentRuntimeResponse | undefined,
  name: string,
  desired: DesiredRuntime,
  signal: AbortSignal,
): Promise<string> {
  const { CreateAgentRuntimeCommand, UpdateAgentRuntimeCommand } = await import(
    '@aws-sdk/client-bedrock-agentcore-control'
  );
  const options = { abortSignal: signal };
  const answer = live
    ? await client.send(new UpdateAgentRuntimeCommand({ ...desired, agentRuntimeId: live.agentRuntimeId }), options)
    : await client.send(new CreateAgentRuntimeCommand({ ...desired, agentRuntimeName: name }), options);
  if (!answer.agentRuntimeId) throw new CliError('failure', 'The platform answered without an agentRuntimeId.');
  return answer.agentRuntimeId;
}

const patienceMs = 10 * 60_000;

/** Resolves once the runtime is READY; rejects with its failure, or after ten minutes. `say` gets what is waited for. */
export async function untilReady(
  client: BedrockAgentCoreControlClient,
  agentRuntimeId: string,
  say: (status: string) => void,
  signal: AbortSignal,
): Promise<GetAgentRuntimeResponse> {
  const { GetAgentRuntimeCommand } = await import('@aws-sdk/client-bedrock-agentcore-control');
  const end = performance.now() + patienceMs;
  for (let wait = 100; performance.now() < end; wait = Math.min(wait * 1.5, 2000)) {
    const runtime = await client.send(new GetAgentRuntimeCommand({ agentRuntimeId }), { abortSignal: signal });
    if (runtime.status === 'READY') return runtime;
    if (runtime.status?.endsWith('_FAILED')) {
      throw new CliError('failure', `The deployment failed: ${runtime.failureReason ?? runtime.status}`);
    }
    say(`the platform makes the image of its sandboxes (${runtime.status})`);
    await sleep(wait, undefined, { signal });
  }
  throw new CliError('failure', 'The runtime is not ready after ten minutes.', 'Look at it with: agentcore status');
}
