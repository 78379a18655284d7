import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type {
  BedrockAgentCoreClient,
  CreateEventCommandInput,
  MemoryRecordCreateInput,
} from '@aws-sdk/client-bedrock-agentcore';
import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { dataClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { note, printJson, type Terminal } from '../terminal/terminal.ts';

/** A line of an export. Moments are ISO 8601; the ids are those of the memory that it came from. */
type Line =
  | {
      kind: 'event';
      eventId: string;
      at: string;
      event: Pick<CreateEventCommandInput, 'actorId' | 'sessionId' | 'payload' | 'metadata' | 'branch'>;
    }
  | {
      kind: 'record';
      recordId: string;
      at: string;
      record: Pick<MemoryRecordCreateInput, 'namespaces' | 'content' | 'metadata' | 'memoryStrategyId'>;
    };

const RECORDS_AT_ONCE = 100;

export function exportMemoryCommand(terminal: Terminal) {
  return platformCommand('export', {
    summary: 'Export all events and records of a memory as JSON Lines.',
    examples: [{ does: 'into a file', line: 'agentcore memory export support-a1B2c3D4e5 --output support.jsonl' }],
  })
    .argument('<memory>', 'id or ARN of the memory')
    .option('-o, --output <file>', 'file to write (default: standard output)')
    .action(async (memoryId, options) => {
      const client = await dataClient(await findConnection(terminal, options));
      const output =
        options.output === undefined ? terminal.stdout : createWriteStream(options.output, { mode: 0o600 });
      let lines = 0;
      for await (const line of exported(client, memoryId)) {
        lines += 1;
        if (!output.write(`${JSON.stringify(line)}\n`)) await once(output, 'drain');
      }
      if (options.output !== undefined) {
        output.end();
        await once(output, 'finish');
        note(terminal, `${lines} lines are in ${options.output}.`);
      }
    });
}

export function importMemoryCommand(terminal: Terminal) {
  return platformCommand('import', {
    summary: 'Import events and records into a memory. Nothing is extracted from them again.',
    details:
      'Events get new ids; their order, times, branches and content stay. Importing a file twice adds its events once.',
    examples: [{ does: 'from a file', line: 'agentcore memory import copy-a1B2c3D4e5 support.jsonl' }],
  })
    .argument('<memory>', 'id or ARN of the memory')
    .argument('<file>', 'a file that agentcore memory export wrote')
    .action(async (memoryId, file, options) => {
      const client = await dataClient(await findConnection(terminal, options));
      const counts = await imported(client, memoryId, file);
      if (options.json) printJson(terminal, counts);
      else note(terminal, `${counts.events} events and ${counts.records} records are in ${memoryId}.`);
    });
}

async function* exported(client: BedrockAgentCoreClient, memoryId: string): AsyncGenerator<Line> {
  const sdk = await import('@aws-sdk/client-bedrock-agentcore');
  for await (const { actorSummaries = [] } of sdk.paginateListActors({ client }, { memoryId }))
    for (const { actorId = '' } of actorSummaries)
      for await (const { sessionSummaries = [] } of sdk.paginateListSessions({ client }, { memoryId, actorId }))
        for (const { sessionId = '' } of sessionSummaries)
          yield* await sessionLines(client, { memoryId, actorId, sessionId });
  const all = { memoryId, namespacePath: '/', maxResults: 100 };
  for await (const { memoryRecordSummaries = [] } of sdk.paginateListMemoryRecords({ client }, all))
    for (const {
      memoryRecordId = '',
      content,
      namespaces,
      metadata,
      memoryStrategyId,
      createdAt,
    } of memoryRecordSummaries)
      yield {
        kind: 'record',
        recordId: memoryRecordId,
        at: createdAt?.toISOString() ?? '',
        record: {
          namespaces,
          content,
          ...(metadata ? { metadata } : {}),
          ...(memoryStrategyId ? { memoryStrategyId } : {}),
        },
      };
}

/** Oldest first, so that a branch's root comes before the branch. */
async function sessionLines(
  client: BedrockAgentCoreClient,
  session: { memoryId: string; actorId: string; sessionId: string },
): Promise<Line[]> {
  const sdk = await import('@aws-sdk/client-bedrock-agentcore');
  const lines: Line[] = [];
  for await (const { events = [] } of sdk.paginateListEvents({ client }, { ...session, maxResults: 100 }))
    for (const { eventId = '', eventTimestamp, actorId, sessionId, payload = [], metadata, branch } of events)
      lines.push({
        kind: 'event',
        eventId,
        at: eventTimestamp?.toISOString() ?? '',
        event: { actorId, sessionId, payload, ...(metadata ? { metadata } : {}), ...(branch ? { branch } : {}) },
      });
  return lines.reverse();
}

async function imported(
  client: BedrockAgentCoreClient,
  memoryId: string,
  file: string,
): Promise<{ events: number; records: number }> {
  const { CreateEventCommand } = await import('@aws-sdk/client-bedrock-agentcore');
  const newIds = new Map<string, string>();
  const records: MemoryRecordCreateInput[] = [];
  const counts = { events: 0, records: 0 };
  let number = 0;
  // Not before it is read: nobody else hears that the file cannot be.
  for await (const text of createInterface({ input: createReadStream(file) })) {
    number += 1;
    if (text.trim() === '') continue;
    const line = readLine(text, number);
    if (line.kind === 'record') {
      const { memoryStrategyId: _, ...record } = line.record;
      records.push({
        ...record,
        metadata: moments(record.metadata),
        requestIdentifier: `line-${number}`,
        timestamp: new Date(line.at),
      });
      if (records.length === RECORDS_AT_ONCE) counts.records += await addRecords(client, memoryId, records.splice(0));
      continue;
    }
    const { branch } = line.event;
    const root = branch?.rootEventId === undefined ? undefined : newIds.get(branch.rootEventId);
    const clientToken = createHash('sha256').update(`${memoryId} ${line.eventId}`).digest('hex');
    const { event } = await client.send(
      new CreateEventCommand({
        ...line.event,
        memoryId,
        clientToken,
        eventTimestamp: new Date(line.at),
        extractionMode: 'SKIP',
        ...(branch ? { branch: { name: branch.name, ...(root === undefined ? {} : { rootEventId: root }) } } : {}),
      }),
    );
    newIds.set(line.eventId, event?.eventId ?? '');
    counts.events += 1;
  }
  if (records.length > 0) counts.records += await addRecords(client, memoryId, records);
  return counts;
}

async function addRecords(
  client: BedrockAgentCoreClient,
  memoryId: string,
  records: MemoryRecordCreateInput[],
): Promise<number> {
  const { BatchCreateMemoryRecordsCommand } = await import('@aws-sdk/client-bedrock-agentcore');
  const clientToken = createHash('sha256')
    .update(JSON.stringify([memoryId, records]))
    .digest('hex');
  const { failedRecords = [] } = await client.send(
    new BatchCreateMemoryRecordsCommand({ memoryId, records, clientToken }),
  );
  const [first] = failedRecords;
  if (first) throw new CliError('failure', `Record of ${first.requestIdentifier}: ${first.errorMessage}`);
  return records.length;
}

/** JSON has no moments: in metadata they are ISO 8601 text. */
function moments(metadata: MemoryRecordCreateInput['metadata']): MemoryRecordCreateInput['metadata'] {
  if (!metadata) return undefined;
  const entries = Object.entries(metadata).map(([key, value]) => {
    const at = value.dateTimeValue;
    return [key, at === undefined ? value : { dateTimeValue: new Date(at) }] as const;
  });
  return Object.fromEntries(entries);
}

function readLine(text: string, number: number): Line {
  try {
    const line: unknown = JSON.parse(text);
    if (typeof line === 'object' && line !== null && 'kind' in line && 'at' in line) {
      if (line.kind === 'event' && 'event' in line) return line as Line;
      if (line.kind === 'record' && 'record' in line) return line as Line;
    }
  } catch {
    // Said below.
  }
  throw new CliError('usage', `Line ${number} is not a line of an export.`);
}
