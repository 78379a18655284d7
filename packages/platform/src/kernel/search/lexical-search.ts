import type { Executor } from '../storage/index.ts';
import type { Hit } from './hit.ts';
import type { SearchedTable } from './searched-table.ts';

/** Rows that are looked at for one query at most; what has more of the query's words comes first. */
const CANDIDATES = 500;
const MAX_WORDS = 32;

/**
 * Full-text search: rows with any word of the query, ranked by how much of the query's weight they hold, where a word
 * weighs more the fewer of the rows found have it. The score is that share, from 0 to 1.
 */
export async function lexicalSearch<Filter>(
  executor: Executor,
  table: Pick<SearchedTable<Filter>, 'name' | 'columns' | 'filterSql'>,
  filter: Filter,
  query: string,
  limit: number,
): Promise<Hit[]> {
  const words = await wordsOf(executor, query);
  if (words.length === 0) return [];
  const forms = words.flatMap((word) => formsOf(word).map((form) => ({ word, form })));
  const params: unknown[] = [
    JSON.stringify(forms),
    forms.map(({ form }) => `'${form.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`).join(' | '),
  ];
  const where = table.filterSql(filter, params, '');
  const rows = await executor.query<{ id: string; score: number }>(
    // setweight and ts_filter leave of a row's words those of the query, in one native pass over each row.
    `WITH query AS MATERIALIZED (SELECT word, form FROM json_to_recordset($1::json) q(word text, form text)),
     found AS MATERIALIZED (
       SELECT id, length(${table.columns.text}) AS size,
         tsvector_to_array(ts_filter(setweight(words, 'A', (SELECT array_agg(form) FROM query)), '{a}')) AS held
       FROM ${table.name} WHERE ${where} AND words @@ $2::tsquery LIMIT ${CANDIDATES}),
     held AS (SELECT DISTINCT f.id, f.size, q.word FROM found f, unnest(f.held) h(form) JOIN query q USING (form)),
     weights AS (
       SELECT w.word, ln(1 + ((SELECT count(*) FROM found) + 1)::float8 / (coalesce(h.n, 0) + 0.5)) AS weight
       FROM (SELECT DISTINCT word FROM query) w LEFT JOIN (SELECT word, count(*) AS n FROM held GROUP BY word) h USING (word))
     SELECT h.id, sum(x.weight) / (SELECT sum(weight) FROM weights) AS score
     FROM held h JOIN weights x USING (word) GROUP BY h.id, h.size ORDER BY score DESC, h.size, h.id LIMIT $${params.push(limit)}`,
    params,
  );
  return rows.map(({ id, score }) => ({ id, score }));
}

/** The query's words in the form that the index has them; stop words are gone. */
async function wordsOf(executor: Executor, query: string): Promise<string[]> {
  const rows = await executor.query<{ word: string }>(
    `SELECT word FROM unnest(tsvector_to_array(to_tsvector('english', $1))) word LIMIT ${MAX_WORDS}`,
    [query.replaceAll('\u0000', ' ')],
  );
  return rows.map((row) => row.word);
}

/** Of a shorter stem other words are made than its own. */
const LEAST_STEM = 5;

/** A stem, and those that the stemmer gives words of its family: it has `allergi` for allergy and allergies, `allerg` for allergic. */
function formsOf(stem: string): string[] {
  if (stem.length < LEAST_STEM || !/^[a-z]+$/.test(stem)) return [stem];
  return [stem, stem.endsWith('i') ? stem.slice(0, -1) : `${stem}i`];
}
