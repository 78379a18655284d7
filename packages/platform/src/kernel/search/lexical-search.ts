import type { Executor } from '../storage/index.ts';
import type { Hit } from './hit.ts';
import { LANGUAGES, type Language } from './language.ts';
import type { SearchedTable } from './searched-table.ts';

/** Rows that are looked at for one query at most; what has more of the query's words comes first. */
const CANDIDATES = 500;
const MAX_WORDS = 32;

/**
 * Full-text search: rows with any word of the query, in any inflection that the stemmer of the row's language knows, ranked by how much of the
 * query's weight they hold, where a word weighs more the fewer of the rows found have it. The score is that share, from 0 to 1.
 */
export async function lexicalSearch<Filter>(
  executor: Executor,
  table: Pick<SearchedTable<Filter>, 'name' | 'columns' | 'filterSql'>,
  filter: Filter,
  query: string,
  limit: number,
): Promise<Hit[]> {
  const forms = await formsOf(executor, query);
  if (forms.length === 0) return [];
  const distinct = [...new Set(forms.map(({ form }) => form))];
  const params: unknown[] = [
    JSON.stringify(forms),
    distinct.map((form) => `'${form.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`).join(' | '),
  ];
  const where = table.filterSql(filter, params, '');
  const rows = await executor.query<{ id: string; score: number }>(
    // setweight and ts_filter leave of a row's words those of the query, in one native pass over each row.
    `WITH query AS MATERIALIZED (SELECT * FROM json_to_recordset($1::json) q(language text, word int, form text)),
     found AS MATERIALIZED (
       SELECT id, language::text AS language, length(${table.columns.text}) AS size,
         tsvector_to_array(ts_filter(setweight(words, 'A', (SELECT array_agg(DISTINCT form) FROM query)), '{a}')) AS held
       FROM ${table.name} WHERE ${where} AND words @@ $2::tsquery LIMIT ${CANDIDATES}),
     held AS (
       SELECT DISTINCT f.id, f.size, q.language, q.word
       FROM found f, unnest(f.held) h(form) JOIN query q USING (form) WHERE q.language = f.language),
     weights AS (
       SELECT language, word, ln(1 + ((SELECT count(DISTINCT id) FROM held) + 1)::float8 / (coalesce(h.n, 0) + 0.5)) AS weight
       FROM (SELECT DISTINCT language, word FROM query) w LEFT JOIN (SELECT word, count(*) AS n FROM held GROUP BY word) h USING (word)),
     totals AS (SELECT language, sum(weight) AS total FROM weights GROUP BY language)
     SELECT h.id, sum(x.weight) / t.total AS score
     FROM held h JOIN weights x USING (language, word) JOIN totals t USING (language)
     GROUP BY h.id, h.size, t.total ORDER BY score DESC, h.size, h.id LIMIT $${params.push(limit)}`,
    params,
  );
  return rows.map(({ id, score }) => ({ id, score }));
}

/** One of the query's words, by its place in the query, in a form that texts of a language have it in. */
interface WordForm {
  language: Language;
  word: number;
  form: string;
}

/** The query's words by the stemmer of each language, for nobody says in which it asks; stop words are gone. */
async function formsOf(executor: Executor, query: string): Promise<WordForm[]> {
  const stems = await executor.query<WordForm>(
    `SELECT language, word, form FROM json_array_elements_text($2::json) language, LATERAL (
       SELECT positions[1]::int AS word, lexeme AS form FROM unnest(to_tsvector(language::regconfig, $1)) ORDER BY 1 LIMIT ${MAX_WORDS}) stems`,
    [query.replaceAll('\u0000', ' '), JSON.stringify(LANGUAGES)],
  );
  return stems.flatMap((stem) => familyOf(stem.form).map((form) => ({ ...stem, form })));
}

/** Of a shorter stem other words are made than its own. */
const LEAST_STEM = 5;

/** A stem, and those that the stemmer gives words of its family: it has `allergi` for allergy and allergies, `allerg` for allergic. */
function familyOf(stem: string): string[] {
  if (stem.length < LEAST_STEM || !/^[a-z]+$/.test(stem)) return [stem];
  return [stem, stem.endsWith('i') ? stem.slice(0, -1) : `${stem}i`];
}
