import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { dataClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { columns, note, print, printJson, type Terminal } from '../terminal/terminal.ts';

const MEMORY = 'id or ARN of the memory';

export function memoryEventsCommand(terminal: Terminal) {
  return platformCommand('events', {
    summary: 'Show the events of a session, newest first. Without a session, list actors and sessions.',
    examples: [
      { does: 'actors and their sessions', line: 'agentcore memory events support-a1B2c3D4e5' },
      {
        does: 'the last ten events of one',
        line: 'agentcore memory events support-a1B2c3D4e5 --actor jane --session s1 --limit 10',
      },
    ],
  })
    .argument('<memory>', MEMORY)
    .option('--actor <id>', 'the actor')
    .option('--session <id>', 'the session of that actor')
    .option('--limit <n>', 'events at most', '20')
    .action(async (memoryId, options) => {
      const { actor: actorId, session: sessionId } = options;
      const sdk = await import('@aws-sdk/client-bedrock-agentcore');
      const client = await dataClient(await findConnection(terminal, options));
      if (actorId === undefined || sessionId === undefined) {
        const sessions: { actorId: string; sessionId: string; createdAt: string }[] = [];
        const actors =
          actorId === undefined
            ? sdk.paginateListActors({ client }, { memoryId })
            : [{ actorSummaries: [{ actorId }] }];
        for await (const page of actors)
          for (const { actorId: each = '' } of page.actorSummaries ?? [])
            for await (const { sessionSummaries = [] } of sdk.paginateListSessions(
              { client },
              { memoryId, actorId: each },
            ))
              for (const { sessionId: id = '', createdAt } of sessionSummaries)
                sessions.push({ actorId: each, sessionId: id, createdAt: createdAt?.toISOString() ?? '' });
        if (options.json) return printJson(terminal, sessions);
        if (sessions.length === 0) return note(terminal, 'This memory has no sessions yet.');
        const rows = sessions.map((each) => [each.actorId, each.sessionId, each.createdAt]);
        for (const line of columns([['ACTOR', 'SESSION', 'CREATED'], ...rows])) print(terminal, line);
        return;
      }
      const maxResults = countOf(options.limit);
      const { events = [] } = await client.send(
        new sdk.ListEventsCommand({ memoryId, actorId, sessionId, maxResults }),
      );
      if (options.json) return printJson(terminal, events);
      if (events.length === 0) return note(terminal, 'This session has no events.');
      for (const { eventTimestamp, payload = [], branch } of events) {
        print(terminal, `${eventTimestamp?.toISOString()}${branch?.name ? `  (branch ${branch.name})` : ''}`);
        for (const { conversational: said, blob, json } of payload)
          print(terminal, `  ${said ? `${said.role}: ${said.content?.text}` : JSON.stringify(blob ?? json?.content)}`);
      }
    });
}

export function memoryRecordsCommand(terminal: Terminal) {
  return platformCommand('records', {
    summary: 'Show long-term records below a namespace.',
    examples: [
      {
        does: 'all records of one actor',
        line: 'agentcore memory records support-a1B2c3D4e5 --namespace /actors/jane',
      },
    ],
  })
    .argument('<memory>', MEMORY)
    .option('--namespace <path>', 'namespace, with all below it', '/')
    .option('--limit <n>', 'records at most', '20')
    .action(async (memoryId, options) => {
      const { ListMemoryRecordsCommand } = await import('@aws-sdk/client-bedrock-agentcore');
      const client = await dataClient(await findConnection(terminal, options));
      const input = { memoryId, namespacePath: options.namespace, maxResults: countOf(options.limit) };
      const { memoryRecordSummaries: records = [] } = await client.send(new ListMemoryRecordsCommand(input));
      if (options.json) return printJson(terminal, records);
      if (records.length === 0) return note(terminal, 'There are no records here.');
      for (const { namespaces, content } of records) print(terminal, `${namespaces?.[0] ?? '-'}  ${content?.text}`);
    });
}

export function memorySearchCommand(terminal: Terminal) {
  return platformCommand('search', {
    summary: 'Search long-term records.',
    examples: [
      { does: 'the best five', line: 'agentcore memory search support-a1B2c3D4e5 "where does she live?" --limit 5' },
    ],
  })
    .argument('<memory>', MEMORY)
    .argument('<query>', 'what to look for')
    .option('--namespace <path>', 'namespace, with all below it', '/')
    .option('--limit <n>', 'records at most', '10')
    .action(async (memoryId, searchQuery, options) => {
      const { RetrieveMemoryRecordsCommand } = await import('@aws-sdk/client-bedrock-agentcore');
      const client = await dataClient(await findConnection(terminal, options));
      const searchCriteria = { searchQuery, topK: countOf(options.limit) };
      const input = { memoryId, namespacePath: options.namespace, searchCriteria };
      const { memoryRecordSummaries: found = [] } = await client.send(new RetrieveMemoryRecordsCommand(input));
      if (options.json) return printJson(terminal, found);
      if (found.length === 0) return note(terminal, 'Nothing was found.');
      for (const { score, content } of found) print(terminal, `${score?.toFixed(2) ?? '-'}  ${content?.text}`);
    });
}

function countOf(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1 && count <= 100) return count;
  throw new CliError('usage', `--limit takes a number from 1 to 100, not ${text}.`);
}
