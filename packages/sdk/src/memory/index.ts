export {
  type CreateEventOptions,
  MemoryClient,
  type MemoryMessage,
  type MemoryRole,
  type MemoryTurnMessage,
  type RetrievedMemory,
  type RetrieveMemoriesOptions,
  type SessionOptions,
} from './memory-client.ts';
