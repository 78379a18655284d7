export { MemorySaver, type MemorySaverOptions } from './memory-saver.ts';
export { MemoryStore, type MemoryStoreOptions } from './memory-store.ts';
