import { setTimeout as sleep } from 'node:timers/promises';
import {
  CreateEventCommand,
  type CreateEventCommandInput,
  ListMemoryRecordsCommand,
  type MemoryRecordSummary,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateMemoryCommand,
  type CreateMemoryCommandInput,
  type Memory,
} from '@aws-sdk/client-bedrock-agentcore-control';
import type { Clients } from './clients.ts';

/** Makes a memory and gives it with its id. */
export async function newMemory(
  { control }: Clients,
  options: Partial<CreateMemoryCommandInput> = {},
): Promise<Memory & { id: string }> {
  const name = `memory_${Math.random().toString(36).slice(2, 10)}`;
  const { memory } = await control.send(new CreateMemoryCommand({ name, eventExpiryDuration: 30, ...options }));
  if (!memory?.id) throw new Error('CreateMemory gave no memory');
  return { ...memory, id: memory.id };
}

export type Turn = [text: string, role: 'USER' | 'ASSISTANT' | 'TOOL' | 'OTHER'];

/** One event with these messages. */
export async function sayIn(
  { data }: Clients,
  input: { memoryId: string; actorId: string; sessionId: string },
  turns: Turn[],
  more: Partial<CreateEventCommandInput> = {},
): Promise<string> {
  const payload = turns.map(([text, role]) => ({ conversational: { role, content: { text } } }));
  const { event } = await data.send(new CreateEventCommand({ ...input, payload, eventTimestamp: new Date(), ...more }));
  return event?.eventId ?? '';
}

/** Waits, at most ninety seconds, until the records of a namespace are as wanted; gives them. */
export async function untilRecords(
  { data }: Clients,
  memoryId: string,
  namespacePath: string,
  wanted: (records: MemoryRecordSummary[]) => boolean,
): Promise<MemoryRecordSummary[]> {
  let records: MemoryRecordSummary[] = [];
  for (const deadline = Date.now() + 90_000; Date.now() < deadline; await sleep(100)) {
    const page = await data.send(new ListMemoryRecordsCommand({ memoryId, namespacePath, maxResults: 100 }));
    records = page.memoryRecordSummaries ?? [];
    if (wanted(records)) return records;
  }
  throw new Error(`after ninety seconds there is: ${JSON.stringify(records.map(({ content }) => content?.text))}`);
}

export const texts = (records: MemoryRecordSummary[]): string[] =>
  records.map(({ content }) => content?.text ?? '').sort();
