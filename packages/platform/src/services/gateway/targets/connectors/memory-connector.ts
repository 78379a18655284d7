import type { JsonObject } from '../../tools/index.ts';
import { type Connector, type ConnectorTool, resultOf, textParameter } from './connector.ts';

const actorId = textParameter('Who is remembered');
const sessionId = textParameter('The conversation');
const namespace = textParameter('The namespace of the records, to the letter');
const namespacePath = textParameter('The beginning of their namespaces');
const memoryRecordId = textParameter('The record');
const maxResults = { type: 'integer', minimum: 1, maximum: 100, description: 'How many at most' };
const nextToken = textParameter('Where the last page ended');

const READS = { readOnly: true, destructive: false, idempotent: true };

function schema<Name extends string>(
  properties: Record<Name, JsonObject>,
  required: readonly NoInfer<Name>[],
): ConnectorTool['inputSchema'] {
  return { type: 'object', properties, required: [...required], additionalProperties: false };
}

/** Messages of a conversation, as the tool takes them. */
interface Messages {
  actorId: string;
  sessionId: string;
  messages: { role: 'USER' | 'ASSISTANT' | 'TOOL' | 'OTHER'; text: string }[];
}

interface Query {
  query: string;
  topK?: number;
}

/** Memory: what an agent may remember and look up. The target names the memory, and no argument another. */
export const memoryConnector: Connector = {
  version: '1.0.0',
  settings: { memoryId: undefined },
  tools: {
    createEvent: {
      description: 'Remembers messages of a conversation',
      inputSchema: schema(
        {
          actorId,
          sessionId,
          messages: {
            ...{ type: 'array', minItems: 1, maxItems: 100, description: 'What was said, in its order' },
            items: {
              ...{ type: 'object', required: ['role', 'text'], additionalProperties: false },
              properties: {
                role: { enum: ['USER', 'ASSISTANT', 'TOOL', 'OTHER'] },
                text: textParameter('What was said'),
              },
            },
          },
        },
        ['actorId', 'sessionId', 'messages'],
      ),
      hints: { readOnly: false, destructive: false, idempotent: false },
      async run({ calls, caller, values, settings: { memoryId = '' }, now }) {
        // Checked against the schema above.
        const { messages, ...place } = values as unknown as Messages;
        const payload = messages.map(({ role, text }) => ({ conversational: { role, content: { text } } }));
        const input = { memoryId, ...place, payload, eventTimestamp: new Date(now) };
        return resultOf(await calls.call('CreateEvent', input, caller));
      },
    },
    listEvents: {
      description: 'Lists what was said in a conversation, the newest first',
      inputSchema: schema({ actorId, sessionId, maxResults, nextToken }, ['actorId', 'sessionId']),
      hints: READS,
      async run({ calls, caller, values, settings: { memoryId = '' } }) {
        const input = { memoryId, ...(values as { actorId: string; sessionId: string }) };
        return resultOf(await calls.call('ListEvents', input, caller));
      },
    },
    listSessions: {
      description: 'Lists the conversations of somebody',
      inputSchema: schema({ actorId, maxResults, nextToken }, ['actorId']),
      hints: READS,
      async run({ calls, caller, values, settings: { memoryId = '' } }) {
        return resultOf(await calls.call('ListSessions', { memoryId, ...(values as { actorId: string }) }, caller));
      },
    },
    retrieveMemoryRecords: {
      description: 'Finds what is remembered that has to do with a question',
      inputSchema: schema(
        {
          query: textParameter('What is looked for, in words'),
          ...{ namespace, namespacePath, nextToken },
          topK: { type: 'integer', minimum: 1, maximum: 100, description: 'How many records at most' },
        },
        ['query'],
      ),
      hints: READS,
      async run({ calls, caller, values, settings: { memoryId = '' } }) {
        const { query: searchQuery, topK, ...where } = values as unknown as Query;
        const searchCriteria = { searchQuery, ...(topK !== undefined && { topK }) };
        return resultOf(await calls.call('RetrieveMemoryRecords', { memoryId, ...where, searchCriteria }, caller));
      },
    },
    listMemoryRecords: {
      description: 'Lists what is remembered',
      inputSchema: schema({ namespace, namespacePath, maxResults, nextToken }, []),
      hints: READS,
      run: async ({ calls, caller, values, settings: { memoryId = '' } }) =>
        resultOf(await calls.call('ListMemoryRecords', { memoryId, ...values }, caller)),
    },
    getMemoryRecord: {
      description: 'Gets one record',
      inputSchema: schema({ memoryRecordId, namespace }, ['memoryRecordId']),
      hints: READS,
      async run({ calls, caller, values, settings: { memoryId = '' } }) {
        const input = { memoryId, ...(values as { memoryRecordId: string }) };
        return resultOf(await calls.call('GetMemoryRecord', input, caller));
      },
    },
    deleteMemoryRecord: {
      description: 'Forgets one record',
      inputSchema: schema({ memoryRecordId, namespace }, ['memoryRecordId']),
      hints: { readOnly: false, destructive: true, idempotent: true },
      async run({ calls, caller, values, settings: { memoryId = '' } }) {
        const input = { memoryId, ...(values as { memoryRecordId: string }) };
        return resultOf(await calls.call('DeleteMemoryRecord', input, caller));
      },
    },
  },
};
