import {
  BatchCreateMemoryRecordsCommand,
  type BatchCreateMemoryRecordsCommandOutput,
  BatchUpdateMemoryRecordsCommand,
  BedrockAgentCoreClient,
  type BedrockAgentCoreClientConfig,
  type Branch,
  CreateEventCommand,
  DeleteEventCommand,
  DeleteMemoryRecordCommand,
  type Event,
  type FilterInput,
  GetMemoryRecordCommand,
  ListEventsCommand,
  ListMemoryRecordsCommand,
  type MemoryMetadataFilterExpression,
  type MemoryRecord,
  type MemoryRecordMetadataValue,
  type MemoryRecordSummary,
  type MetadataValue,
  type PayloadType,
  RetrieveMemoryRecordsCommand,
} from '@aws-sdk/client-bedrock-agentcore';

export type MemoryRole = 'USER' | 'ASSISTANT' | 'TOOL' | 'OTHER';

/** One message: its text and who said it, in the order of the specification. */
export type MemoryMessage = [text: string, role: MemoryRole];

export interface CreateEventOptions {
  memoryId: string;
  actorId: string;
  sessionId: string;
  messages?: readonly MemoryMessage[];
  /** Kept beside the messages: anything JSON can hold. */
  blob?: unknown;
  /** When it was said; now when absent. */
  timestamp?: Date;
  branch?: Branch;
  metadata?: Record<string, MetadataValue>;
  /** `false`: nothing long-term is made of it. */
  extract?: boolean;
}

/** `namespace` looks in exactly one place, `namespacePath` in all below it. */
export type ListRecordsOptions = {
  memoryId: string;
  metadataFilters?: MemoryMetadataFilterExpression[];
} & ({ namespace: string; namespacePath?: undefined } | { namespacePath: string; namespace?: undefined });

export type RetrieveMemoriesOptions = ListRecordsOptions & {
  query: string;
  /** Records at most; 10 when absent. */
  topK?: number;
};

/** What a record is to hold. */
export interface RecordContent {
  memoryId: string;
  text: string;
  metadata?: Record<string, MemoryRecordMetadataValue>;
  /** The moment that it is about; now when absent. */
  timestamp?: Date;
}

/** A record that a search found. */
export interface RetrievedMemory {
  id: string;
  text: string;
  /** From 0 to 1; higher is better. */
  score: number;
  namespace: string | undefined;
}

export interface SessionOptions {
  memoryId: string;
  actorId: string;
  sessionId: string;
  /** A branch of the session; its main line when absent. */
  branch?: string;
}

export interface ListEventsOptions extends SessionOptions {
  /** Only events with all of these, at most five. */
  metadata?: Record<string, string>;
  /** Events in one request; 100 when absent. */
  pageSize?: number;
}

/** One message as it was kept. */
export interface MemoryTurnMessage {
  text: string;
  role: MemoryRole;
}

/**
 * Memory as agents use it. `createEvent` appends to a session's log, `retrieveMemories` searches what was made of it; it
 * gives text back and puts nothing into any prompt. Every method throws the errors of the AWS SDK.
 * Source: spec "Memory operations".
 */
export class MemoryClient {
  readonly #client: BedrockAgentCoreClient;

  /** Endpoint, region and credentials may come from the environment, as for every AWS client. */
  constructor(config: BedrockAgentCoreClientConfig = {}) {
    this.#client = new BedrockAgentCoreClient(config);
  }

  /** Resolves when the event is durable. */
  async createEvent(options: CreateEventOptions): Promise<Event> {
    const { memoryId, actorId, sessionId, messages = [], blob, timestamp = new Date(), branch, metadata } = options;
    const payload: PayloadType[] = messages.map(([text, role]) => ({ conversational: { role, content: { text } } }));
    // The document of the SDK is any JSON.
    if (blob !== undefined) payload.push({ blob: blob as PayloadType['blob'] & {} });
    const input = { memoryId, actorId, sessionId, payload, branch, metadata, eventTimestamp: timestamp };
    const extractionMode = options.extract === false ? 'SKIP' : undefined;
    const { event } = await this.#client.send(new CreateEventCommand({ ...input, extractionMode }));
    if (!event) throw new Error('CreateEvent gave no event');
    return event;
  }

  /** What was extracted from the event stays. */
  async deleteEvent(options: { memoryId: string; actorId: string; sessionId: string; eventId: string }): Promise<void> {
    await this.#client.send(new DeleteEventCommand(options));
  }

  /** The long-term records that fit the query best, best first. */
  async retrieveMemories(options: RetrieveMemoriesOptions): Promise<RetrievedMemory[]> {
    return (await this.searchRecords(options)).map(({ memoryRecordId, content, score, namespaces }) => ({
      id: memoryRecordId ?? '',
      text: content?.text ?? '',
      score: score ?? 0,
      namespace: namespaces?.[0],
    }));
  }

  /** As `retrieveMemories`, in the shape of the wire: with metadata, times and strategy. */
  async searchRecords(options: RetrieveMemoriesOptions): Promise<MemoryRecordSummary[]> {
    const { memoryId, namespace, namespacePath, query, topK, metadataFilters } = options;
    const searchCriteria = { searchQuery: query, topK, metadataFilters };
    const found = await this.#client.send(
      new RetrieveMemoryRecordsCommand({ memoryId, namespace, namespacePath, searchCriteria }),
    );
    return found.memoryRecordSummaries ?? [];
  }

  /** The records that hold in a namespace, or in all below a path, page after page, in the shape of the wire. */
  async *listRecords(options: ListRecordsOptions): AsyncGenerator<MemoryRecordSummary> {
    let nextToken: string | undefined;
    do {
      const page = await this.#client.send(new ListMemoryRecordsCommand({ ...options, maxResults: 100, nextToken }));
      yield* page.memoryRecordSummaries ?? [];
      nextToken = page.nextToken;
    } while (nextToken);
  }

  /** One record in the shape of the wire; an error when it is not there, or not in `namespace`. */
  async getRecord(options: { memoryId: string; recordId: string; namespace?: string }): Promise<MemoryRecord> {
    const { recordId: memoryRecordId, ...place } = options;
    const { memoryRecord } = await this.#client.send(new GetMemoryRecordCommand({ ...place, memoryRecordId }));
    if (!memoryRecord) throw new Error('GetMemoryRecord gave no record');
    return memoryRecord;
  }

  /** Keeps a record of the caller's own and gives its id. Throws an Error with the platform's words when it is refused. */
  async createRecord(options: RecordContent & { namespace: string }): Promise<string> {
    const { memoryId, namespace, text, metadata, timestamp = new Date() } = options;
    const record = { requestIdentifier: 'one', namespaces: [namespace], content: { text }, metadata, timestamp };
    return writtenId(await this.#client.send(new BatchCreateMemoryRecordsCommand({ memoryId, records: [record] })));
  }

  /** Gives a record another text, and other metadata when there are any. Throws as `createRecord`. */
  async updateRecord(options: RecordContent & { recordId: string }): Promise<void> {
    const { memoryId, recordId: memoryRecordId, text, metadata, timestamp = new Date() } = options;
    const record = { memoryRecordId, content: { text }, metadata, timestamp };
    writtenId(await this.#client.send(new BatchUpdateMemoryRecordsCommand({ memoryId, records: [record] })));
  }

  async deleteRecord({ memoryId, recordId }: { memoryId: string; recordId: string }): Promise<void> {
    await this.#client.send(new DeleteMemoryRecordCommand({ memoryId, memoryRecordId: recordId }));
  }

  /** The events of a session, newest first, page after page. */
  async *listEvents(options: ListEventsOptions): AsyncGenerator<Event> {
    const { memoryId, actorId, sessionId, pageSize: maxResults = 100 } = options;
    const filter = filterOf(options);
    let nextToken: string | undefined;
    do {
      const page = await this.#client.send(
        new ListEventsCommand({ memoryId, actorId, sessionId, filter, maxResults, nextToken }),
      );
      yield* page.events ?? [];
      nextToken = page.nextToken;
    } while (nextToken);
  }

  /** The last `k` turns, oldest first; a turn begins with what the user says. */
  async getLastTurns(options: SessionOptions & { k?: number }): Promise<MemoryTurnMessage[][]> {
    const { k = 5 } = options;
    const turns: MemoryTurnMessage[][] = [];
    let turn: MemoryTurnMessage[] = [];
    for await (const event of this.listEvents({ branch: 'main', ...options })) {
      for (const message of messagesOf(event).reverse()) {
        turn.unshift(message);
        if (message.role !== 'USER') continue;
        turns.unshift(turn);
        turn = [];
        if (turns.length === k) return turns;
      }
    }
    // What was said before the user spoke first is a turn of its own.
    return turn.length > 0 ? [turn, ...turns] : turns;
  }

  /** Frees the connections; the client cannot be used afterwards. */
  close(): void {
    this.#client.destroy();
  }
}

function filterOf({ branch, metadata = {} }: ListEventsOptions): FilterInput | undefined {
  const labels = Object.entries(metadata);
  if (branch === undefined && labels.length === 0) return undefined;
  return {
    ...(branch === undefined ? {} : { branch: { name: branch, includeParentBranches: true } }),
    ...(labels.length === 0
      ? {}
      : {
          eventMetadata: labels.map(([metadataKey, stringValue]) => ({
            left: { metadataKey },
            operator: 'EQUALS_TO' as const,
            right: { metadataValue: { stringValue } },
          })),
        }),
  };
}

function writtenId({
  failedRecords = [],
  successfulRecords = [],
}: Pick<BatchCreateMemoryRecordsCommandOutput, 'failedRecords' | 'successfulRecords'>): string {
  const [failed] = failedRecords;
  if (failed) throw new Error(`the record was refused: ${failed.errorMessage}`);
  return successfulRecords[0]?.memoryRecordId ?? '';
}

function messagesOf({ payload = [] }: Event): MemoryTurnMessage[] {
  return payload.flatMap(({ conversational: said }) =>
    said ? [{ text: said.content?.text ?? '', role: said.role as MemoryRole }] : [],
  );
}
