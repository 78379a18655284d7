export {
  type CreateEventOptions,
  type ListEventsOptions,
  type ListRecordsOptions,
  MemoryClient,
  type MemoryMessage,
  type MemoryRole,
  type MemoryTurnMessage,
  type RecordContent,
  type RetrievedMemory,
  type RetrieveMemoriesOptions,
  type SessionOptions,
} from './memory-client.ts';
