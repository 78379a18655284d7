import type { AgentRuntime, BedrockAgentCoreControlClient } from '@aws-sdk/client-bedrock-agentcore-control';
import { CliError } from '../cli-error.ts';
import { readRecord } from '../project/deploy-state.ts';
import { findProject } from '../project/load-project.ts';
import { runtimeName } from '../project/project.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { controlClient } from './clients.ts';
import type { Connection } from './connection.ts';

export interface RuntimeRef {
  id: string;
  arn: string;
  name: string;
  /** The agent's folder, when the runtime was named by standing in it. */
  folder: string | undefined;
}

/** All runtimes of the account. */
export async function listRuntimes(client: BedrockAgentCoreControlClient): Promise<AgentRuntime[]> {
  const { paginateListAgentRuntimes } = await import('@aws-sdk/client-bedrock-agentcore-control');
  const all: AgentRuntime[] = [];
  for await (const page of paginateListAgentRuntimes({ client }, {})) all.push(...(page.agentRuntimes ?? []));
  return all;
}

/** The runtime of that name; undefined when there is none. */
export async function runtimeByName(
  client: BedrockAgentCoreControlClient,
  name: string,
): Promise<AgentRuntime | undefined> {
  return (await listRuntimes(client)).find((runtime) => runtime.agentRuntimeName === name);
}

/**
 * The runtime that a command is about: `--agent` (name, id or ARN), else the one deployed from the folder the user stands in.
 * A user who may not list runtimes can name one by its ARN or id. Rejects with a `CliError` that says what to do.
 */
export async function resolveRuntime(
  terminal: Terminal,
  connection: Connection,
  agent: string | undefined,
): Promise<RuntimeRef> {
  const named = agent === undefined ? undefined : runtimeOf(agent);
  if (named) return named;
  const project = agent === undefined ? await findProject(terminal.cwd) : undefined;
  if (project) {
    const record = await readRecord(project.folder, connection);
    const name = project.file.name;
    if (record) return { id: record.agentRuntimeId, arn: record.agentRuntimeArn, name, folder: project.folder };
  }
  const client = await controlClient(connection);
  let all: AgentRuntime[];
  try {
    all = await listRuntimes(client);
  } catch (error) {
    const { region, accountId } = connection;
    const known = runtimeOf(`arn:aws:bedrock-agentcore:${region}:${accountId ?? ''}:runtime/${agent}`);
    if (known && error instanceof Error && error.name === 'AccessDeniedException') return known;
    throw error;
  }
  const wanted = agent ?? project?.file.name;
  const names = all.map((runtime) => runtime.agentRuntimeName ?? '').sort();
  const known = names.length > 0 ? `Deployed here: ${names.join(', ')}.` : 'Nothing is deployed here yet.';
  if (wanted === undefined) {
    throw new CliError(
      'usage',
      'Which agent? There is no agentcore.json here or above.',
      `Name it with --agent NAME. ${known}`,
    );
  }
  const found = all.find(
    ({ agentRuntimeName, agentRuntimeId, agentRuntimeArn }) =>
      [agentRuntimeName, agentRuntimeId, agentRuntimeArn].includes(wanted) || agentRuntimeName === runtimeName(wanted),
  );
  if (!found?.agentRuntimeArn || !found.agentRuntimeId) {
    const remedy = agent === undefined ? 'Deploy it first: agentcore deploy' : known;
    throw new CliError('notFound', `${wanted} is not deployed at ${connection.endpoint}.`, remedy);
  }
  return {
    id: found.agentRuntimeId,
    arn: found.agentRuntimeArn,
    name: found.agentRuntimeName ?? wanted,
    folder: project?.folder,
  };
}

/** The runtime that an ARN names; undefined when it is no ARN of one. */
function runtimeOf(arn: string): RuntimeRef | undefined {
  const [, id, name] = /^arn:[\w-]+:bedrock-agentcore:[\w-]+:\d{12}:runtime\/((\w+)-[a-zA-Z0-9]{10})$/.exec(arn) ?? [];
  return id && name ? { id, arn, name, folder: undefined } : undefined;
}
