import type { GetAgentRuntimeResponse } from '@aws-sdk/client-bedrock-agentcore-control';
import { platformCommand } from '../command.ts';
import { controlClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { resolveRuntime } from '../platform/runtimes.ts';
import { listSessions } from '../platform/sessions.ts';
import { columns, print, printJson, styled, type Terminal } from '../terminal/terminal.ts';

export function statusCommand(terminal: Terminal) {
  return platformCommand('status', {
    summary: 'Show an agent: state, versions, endpoints and live sessions.',
    examples: [
      { does: 'the agent in this folder', line: 'agentcore status' },
      {
        does: 'how many sessions are alive',
        line: "agentcore status --agent my_agent --json | jq '.sessions | length'",
      },
    ],
  })
    .option('-a, --agent <name>', 'agent by name, id or ARN (default: the one in this folder)')
    .action(async (options) => {
      const sdk = await import('@aws-sdk/client-bedrock-agentcore-control');
      const connection = await findConnection(terminal, options);
      const { id } = await resolveRuntime(terminal, connection, options.agent);
      const client = await controlClient(connection);
      const [runtime, versions, endpoints, sessions] = await Promise.all([
        client.send(new sdk.GetAgentRuntimeCommand({ agentRuntimeId: id })),
        gather(sdk.paginateListAgentRuntimeVersions({ client }, { agentRuntimeId: id }), (page) => page.agentRuntimes),
        gather(
          sdk.paginateListAgentRuntimeEndpoints({ client }, { agentRuntimeId: id }),
          (page) => page.runtimeEndpoints,
        ),
        listSessions(connection, id),
      ]);
      const { $metadata: _, ...shown } = runtime;
      if (options.json) return printJson(terminal, { runtime: shown, versions, endpoints, sessions });
      const heading = (text: string): void => print(terminal, `\n${styled(terminal, 'stdout', 'bold', text)}`);
      const table = (rows: string[][]): void => {
        for (const line of columns(rows)) print(terminal, `  ${line}`);
      };
      print(terminal, styled(terminal, 'stdout', 'bold', runtime.agentRuntimeName ?? id));
      table(factsOf(runtime));
      heading('Versions');
      table(versions.map((v) => [v.agentRuntimeVersion ?? '', v.status ?? '', v.lastUpdatedAt?.toISOString() ?? '']));
      heading('Endpoints');
      table(endpoints.map((e) => [e.name ?? '', e.status ?? '', `version ${e.liveVersion ?? '–'}`]));
      heading('Live sessions');
      if (sessions.length === 0) print(terminal, '  none');
      table(sessions.map((s) => [s.sessionId, s.state, s.isolation, s.startedAt]));
    });
}

function factsOf(runtime: GetAgentRuntimeResponse): string[][] {
  const { codeConfiguration: code, containerConfiguration: image } = runtime.agentRuntimeArtifact ?? {};
  return [
    ['status', `${runtime.status}${runtime.failureReason ? `: ${runtime.failureReason}` : ''}`],
    ['version', runtime.agentRuntimeVersion ?? ''],
    ['arn', runtime.agentRuntimeArn ?? ''],
    ['role', runtime.roleArn ?? ''],
    ...(code ? [['code', `${code.runtime} ${code.entryPoint?.join(' ')}`]] : []),
    ...(image ? [['image', image.containerUri ?? '']] : []),
    ...(runtime.description ? [['about', runtime.description]] : []),
  ];
}

async function gather<Page, Item>(
  pages: AsyncIterable<Page>,
  items: (page: Page) => Item[] | undefined,
): Promise<Item[]> {
  const all: Item[] = [];
  for await (const page of pages) all.push(...(items(page) ?? []));
  return all;
}
