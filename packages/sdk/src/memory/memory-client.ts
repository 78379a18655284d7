import {
  BedrockAgentCoreClient,
  type BedrockAgentCoreClientConfig,
  type Branch,
  CreateEventCommand,
  type Event,
  ListEventsCommand,
  type MemoryMetadataFilterExpression,
  type MetadataValue,
  RetrieveMemoryRecordsCommand,
} from '@aws-sdk/client-bedrock-agentcore';

export type MemoryRole = 'USER' | 'ASSISTANT' | 'TOOL' | 'OTHER';

/** One message: its text and who said it, in the order of the specification. */
export type MemoryMessage = [text: string, role: MemoryRole];

export interface CreateEventOptions {
  memoryId: string;
  actorId: string;
  sessionId: string;
  messages: readonly MemoryMessage[];
  /** When it was said; now when absent. */
  timestamp?: Date;
  branch?: Branch;
  metadata?: Record<string, MetadataValue>;
}

/** `namespace` looks in exactly one place, `namespacePath` in all below it. */
export type RetrieveMemoriesOptions = {
  memoryId: string;
  query: string;
  /** Records at most; 10 when absent. */
  topK?: number;
  metadataFilters?: MemoryMetadataFilterExpression[];
} & ({ namespace: string; namespacePath?: undefined } | { namespacePath: string; namespace?: undefined });

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
    const { memoryId, actorId, sessionId, messages, timestamp = new Date(), branch, metadata } = options;
    const payload = messages.map(([text, role]) => ({ conversational: { role, content: { text } } }));
    const input = { memoryId, actorId, sessionId, payload, branch, metadata, eventTimestamp: timestamp };
    const { event } = await this.#client.send(new CreateEventCommand(input));
    if (!event) throw new Error('CreateEvent gave no event');
    return event;
  }

  /** The long-term records that fit the query best, best first. */
  async retrieveMemories(options: RetrieveMemoriesOptions): Promise<RetrievedMemory[]> {
    const { memoryId, namespace, namespacePath, query, topK, metadataFilters } = options;
    const searchCriteria = { searchQuery: query, topK, metadataFilters };
    const found = await this.#client.send(
      new RetrieveMemoryRecordsCommand({ memoryId, namespace, namespacePath, searchCriteria }),
    );
    return (found.memoryRecordSummaries ?? []).map(({ memoryRecordId, content, score, namespaces }) => ({
      id: memoryRecordId ?? '',
      text: content?.text ?? '',
      score: score ?? 0,
      namespace: namespaces?.[0],
    }));
  }

  /** The events of a session, newest first, page after page. */
  async *listEvents({ memoryId, actorId, sessionId, branch }: SessionOptions): AsyncGenerator<Event> {
    const filter = branch === undefined ? undefined : { branch: { name: branch, includeParentBranches: true } };
    let nextToken: string | undefined;
    do {
      const page = await this.#client.send(
        new ListEventsCommand({ memoryId, actorId, sessionId, filter, maxResults: 100, nextToken }),
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

function messagesOf({ payload = [] }: Event): MemoryTurnMessage[] {
  return payload.flatMap(({ conversational: said }) =>
    said ? [{ text: said.content?.text ?? '', role: said.role as MemoryRole }] : [],
  );
}
