export { fuse } from './fuse.ts';
export type { Hit } from './hit.ts';
export type { HybridSearchDeps, VectorSearch } from './hybrid-search.ts';
export { HybridSearch } from './hybrid-search.ts';
export { languageOf } from './language.ts';
export { lexicalSearch } from './lexical-search.ts';
export type { SearchedTable } from './searched-table.ts';
export { VectorIndex } from './vector-index.ts';
