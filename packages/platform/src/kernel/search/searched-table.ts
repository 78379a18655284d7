/**
 * A table whose texts are searched, described by the service that has it. Besides the columns named here it has `id`, `language` (a regconfig,
 * as `languageOf` says of the text), `words` (a tsvector of the text by it, with an index) and `needs_vector` (true from each change of the text until it has a vector of the
 * present model). Names and what the functions give go into statements as they are.
 */
export interface SearchedTable<Filter> {
  name: string;
  columns: {
    text: string;
    /** Is another when the text is another. */
    hash: string;
    /** Rows get their vectors in this order. */
    order: string;
  };
  /** The rows that are to have vectors, as SQL; `prefix` is the table's alias and a dot. */
  currentSql(prefix: string): string;
  /** The rows that a search is about, as SQL; appends its parameters. */
  filterSql(filter: Filter, params: unknown[], prefix: string): string;
  vectors: VectorTables<Filter>;
}

/** The tables of a searched table's vectors, one for each model; a migration of the service makes the list of them. */
export interface VectorTables<Filter> {
  /** Their names begin with it; an underscore and twelve hexadecimal digits follow. */
  prefix: string;
  /** The list of them: the columns `model`, the key, and `table_name`. */
  list: string;
  /** Columns of the searched table that each vector has beside it, with their SQL types: what narrows a search without a look at the texts. */
  place: Readonly<Record<string, string>>;
  /** Those of them that have an index together. */
  placeIndex: readonly string[];
  /** A filter's condition on them as SQL, which lets through at least what the filter does; appends its parameters. */
  placeSql(filter: Filter, params: unknown[], prefix: string): string;
  /** The same text for filters of the same place. */
  placeName(filter: Filter): string;
  /** Whether the place may be a small part of all that has vectors. */
  isNarrow(filter: Filter): boolean;
}
