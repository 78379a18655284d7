import type { Executor } from '../../../kernel/storage/index.ts';
import { wire } from '../../../kernel/stored-shape.ts';
import type { Tool } from '../tools/index.ts';

type Reader = Pick<Executor, 'query'>;

/** The text of a tool that a model has not seen. */
export interface Unseen {
  arn: string;
  position: number;
  tool: Tool;
}

export interface MadeVector {
  arn: string;
  digest: string;
  /** Undefined where the model refuses the text. */
  vector: Float32Array | undefined;
}

/** Whether a gateway, a row of `resources`, has search. */
const SEARCHES = `gateway.data #>> '{definition,protocolConfiguration,mcp,searchType}' = 'SEMANTIC'`;

/** Tools without a vector of this model, of gateways with search: the first of each target first, so that a small one does not wait for a large one. */
export async function unseenTools(database: Reader, model: string, limit: number): Promise<Unseen[]> {
  const rows = await database.query<Omit<Unseen, 'tool'> & { tool: unknown }>(
    `WITH unseen AS MATERIALIZED (
       SELECT t.target_arn, t.position FROM gateway_tools t
       JOIN resources target ON target.arn = t.target_arn JOIN resources gateway ON gateway.arn = target.parent
       WHERE ${SEARCHES} AND NOT EXISTS (
         SELECT FROM gateway_tool_vectors v WHERE v.target_arn = t.target_arn AND v.digest = t.digest AND v.model = $1)
       ORDER BY t.position, t.target_arn LIMIT $2)
     SELECT target_arn AS arn, position, tool FROM unseen JOIN gateway_tools USING (target_arn, position)`,
    [model, limit],
  );
  return rows.map((row) => ({ ...row, tool: wire<Tool>()(row.tool, 'tool') }));
}

/** Says of tools that were stored before there were digests what theirs are. */
export async function writeDigests(
  database: Pick<Executor, 'execute'>,
  digests: readonly { arn: string; position: number; digest: string }[],
): Promise<void> {
  await database.execute(
    `UPDATE gateway_tools t SET digest = x.digest FROM json_to_recordset($1::json) AS x (arn text, position int, digest text)
     WHERE t.target_arn = x.arn AND t.position = x.position AND t.digest IS NULL`,
    [JSON.stringify(digests)],
  );
}

/** Keeps the vectors of texts that tools still have. */
export async function writeVectors(
  database: Pick<Executor, 'execute'>,
  model: string,
  made: readonly MadeVector[],
): Promise<void> {
  const rows = made.map(({ arn, digest, vector }) => ({ arn, digest, vector: vector && base64(vector) }));
  await database.execute(
    `INSERT INTO gateway_tool_vectors (target_arn, digest, model, vector)
     SELECT DISTINCT ON (x.arn, x.digest) x.arn, x.digest, $1, decode(x.vector, 'base64')
     FROM json_to_recordset($2::json) AS x (arn text, digest text, vector text)
     JOIN gateway_tools t ON t.target_arn = x.arn AND t.digest = x.digest
     ON CONFLICT (target_arn, digest) DO UPDATE SET model = excluded.model, vector = excluded.vector`,
    [model, JSON.stringify(rows)],
  );
}

/** The vectors of these digests, by the ARNs of their targets, as far as this model has made them; those that it refuses are left out. */
export async function readVectors(
  database: Reader,
  model: string,
  wanted: ReadonlyMap<string, readonly string[]>,
): Promise<(MadeVector & { vector: Float32Array })[]> {
  const rows = await database.query<{ arn: string; digest: string; vector: Uint8Array }>(
    `SELECT v.target_arn AS arn, v.digest, v.vector
     FROM jsonb_each($2::jsonb) AS w (arn, digests) CROSS JOIN jsonb_array_elements_text(w.digests) AS d (digest)
     JOIN gateway_tool_vectors v ON v.target_arn = w.arn AND v.digest = d.digest
     WHERE v.model = $1 AND v.vector IS NOT NULL`,
    [model, JSON.stringify(Object.fromEntries(wanted))],
  );
  // Copied: four bytes of a number stand at a multiple of four.
  return rows.map(({ arn, digest, vector }) => ({
    arn,
    digest,
    vector: new Float32Array(Uint8Array.from(vector).buffer),
  }));
}

/** The number of tools of a gateway for which this model has seen the text. */
export async function progressOf(
  database: Reader,
  model: string,
  gatewayArn: string,
): Promise<{ made: number; tools: number }> {
  const [row] = await database.query<{ made: number; tools: number }>(
    `SELECT count(v.digest)::int AS made, count(*)::int AS tools FROM gateway_tools t
     JOIN resources target ON target.arn = t.target_arn
     LEFT JOIN gateway_tool_vectors v ON v.target_arn = t.target_arn AND v.digest = t.digest AND v.model = $1
     WHERE target.parent = $2`,
    [model, gatewayArn],
  );
  return row ?? { made: 0, tools: 0 };
}

function base64(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64');
}
