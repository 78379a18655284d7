import { platformCommand } from '../command.ts';
import { controlClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { listRuntimes } from '../platform/runtimes.ts';
import { columns, note, print, printJson, type Terminal, typed } from '../terminal/terminal.ts';

export function listCommand(terminal: Terminal) {
  return platformCommand('list', {
    summary: 'List the agents that are deployed.',
    examples: [{ does: 'names, versions and states of all agents', line: 'agentcore list' }],
  }).action(async (options) => {
    const connection = await findConnection(terminal, options);
    const runtimes = await listRuntimes(await controlClient(connection));
    if (options.json) return printJson(terminal, runtimes);
    if (runtimes.length === 0)
      return note(terminal, typed(terminal, 'Nothing is deployed yet. Begin with: agentcore create my-agent'));
    const rows = runtimes.map((runtime) => [
      runtime.agentRuntimeName ?? '',
      runtime.agentRuntimeVersion ?? '',
      runtime.status ?? '',
      runtime.agentRuntimeId ?? '',
      runtime.lastUpdatedAt?.toISOString() ?? '',
    ]);
    for (const line of columns([['NAME', 'VERSION', 'STATUS', 'ID', 'UPDATED'], ...rows])) print(terminal, line);
  });
}
