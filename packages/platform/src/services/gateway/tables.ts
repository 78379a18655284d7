import type { Executor, Migration, RetentionRule } from '../../kernel/storage/index.ts';
import { NO_OFFERS, type Offers, storedOffers } from './targets/offers.ts';
import { digestOf } from './tools/index.ts';
import { forgetUsage } from './usage/index.ts';

/** The tables of tools, of which a document may bring thousands, and of drafts of documents. Gateways and targets are in the table `resources`. */
export const gatewayMigrations: readonly Migration[] = [
  {
    id: 'gateway/0001-tools',
    sql: `
      CREATE TABLE gateway_tools (
        target_arn text NOT NULL REFERENCES resources (arn) ON DELETE CASCADE,
        position int NOT NULL,
        tool jsonb NOT NULL,
        PRIMARY KEY (target_arn, position)
      );
      /* The text of a document from a bucket, until its tools are made: the platform reads it in the name of who named it. */
      CREATE TABLE gateway_documents (
        target_arn text PRIMARY KEY REFERENCES resources (arn) ON DELETE CASCADE,
        document text NOT NULL
      );`,
  },
  {
    id: 'gateway/0002-offers',
    sql: `
      /* What MCP servers offer beside tools. */
      CREATE TABLE gateway_offers (
        target_arn text NOT NULL REFERENCES resources (arn) ON DELETE CASCADE,
        kind text NOT NULL CHECK (kind IN ('prompts', 'resources', 'templates')),
        position int NOT NULL,
        offer jsonb NOT NULL,
        PRIMARY KEY (target_arn, kind, position)
      );
      /* Each tool as it was when it was stored first since the owner's last update, and whether it was another one later. */
      CREATE TABLE gateway_first_tools (
        target_arn text NOT NULL REFERENCES resources (arn) ON DELETE CASCADE,
        name text NOT NULL,
        digest text NOT NULL,
        changed boolean NOT NULL DEFAULT false,
        PRIMARY KEY (target_arn, name)
      );`,
  },
  {
    id: 'gateway/0003-vectors',
    sql: `
      /* Of the text that is searched by its meaning; null until somebody looks at tools that were stored before. */
      ALTER TABLE gateway_tools ADD COLUMN digest text;
      CREATE TABLE gateway_tool_vectors (
        target_arn text NOT NULL REFERENCES resources (arn) ON DELETE CASCADE,
        digest text NOT NULL,
        model text NOT NULL,
        /* 32-bit numbers; null where the model refuses the text. */
        vector bytea,
        PRIMARY KEY (target_arn, digest)
      );`,
  },
  {
    id: 'gateway/0004-rate-limits',
    sql: `
      /* What all servers have drawn of the window of a rate limit: ADR 36. */
      CREATE TABLE gateway_permits (
        bucket text PRIMARY KEY,
        window_no bigint NOT NULL,
        used bigint NOT NULL,
        /* To the last draw. */
        granted bigint NOT NULL,
        drawn_at timestamptz NOT NULL
      );
      CREATE INDEX gateway_permits_drawn_at ON gateway_permits (drawn_at);
      /* Places for connections that a life of a server has. */
      CREATE TABLE gateway_connections (
        bucket text NOT NULL,
        epoch bigint NOT NULL,
        held bigint NOT NULL,
        expires_at timestamptz NOT NULL,
        PRIMARY KEY (bucket, epoch)
      );
      CREATE INDEX gateway_connections_expires_at ON gateway_connections (expires_at);`,
  },
  {
    id: 'gateway/0005-bytes',
    sql: `
      /* What targets offer counts in their account's quota: once for those that were made before. */
      UPDATE resources r SET data = r.data || jsonb_build_object('bytes', o.bytes) FROM (
        SELECT target_arn, sum(octet_length(offer::text) + 4096) AS bytes FROM (
          SELECT target_arn, tool AS offer FROM gateway_tools UNION ALL SELECT target_arn, offer FROM gateway_offers) a
        GROUP BY target_arn) o
      WHERE r.arn = o.target_arn;`,
  },
  {
    id: 'gateway/0006-usage',
    sql: `
      /* What callers took of models, by the hour. It outlives the gateway, as other usage does. */
      CREATE TABLE gateway_usage (
        gateway_arn text NOT NULL,
        hour timestamptz NOT NULL,
        target text NOT NULL,
        model text NOT NULL,
        caller text NOT NULL,
        calls bigint NOT NULL,
        failed bigint NOT NULL,
        estimated bigint NOT NULL,
        input bigint NOT NULL,
        output bigint NOT NULL,
        cache_read bigint NOT NULL,
        cache_write bigint NOT NULL,
        PRIMARY KEY (gateway_arn, hour, target, model, caller)
      );
      CREATE INDEX gateway_usage_by_hour ON gateway_usage (hour);`,
  },
  {
    id: 'gateway/0007-long-windows',
    sql: `
      /* Windows of budgets are days and months long. Those that were drawn before this was said are of minutes at most. */
      ALTER TABLE gateway_permits ADD COLUMN ends_at timestamptz NOT NULL DEFAULT now() + interval '1 hour';
      DROP INDEX gateway_permits_drawn_at;
      CREATE INDEX gateway_permits_ends_at ON gateway_permits (ends_at);`,
  },
  {
    id: 'gateway/0008-sticky-sessions',
    sql: `
      /* Which entry of a weighted rule a session was given: ADR 37. */
      CREATE TABLE gateway_sticky_sessions (
        session text PRIMARY KEY,
        name text NOT NULL,
        seen_at timestamptz NOT NULL
      );
      CREATE INDEX gateway_sticky_sessions_seen_at ON gateway_sticky_sessions (seen_at);`,
  },
];

/** Longer than any session may be idle. */
const LONGEST_SESSION_MS = 30 * 3_600_000;

/** Windows that ended long ago, and places of servers that are gone, count for nobody. `usageMs`: how long it is known what models took. */
export function gatewayRetention(database: Executor, { usageMs }: { usageMs: number }): RetentionRule[] {
  const rule = (name: string, table: string, key: string, time: string, keepMs = 600_000): RetentionRule => ({
    ...{ name, keepMs },
    forget: (before, limit) =>
      database.execute(
        `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE ${time} < $1 ORDER BY ${time} LIMIT $2) AND ${time} < $1`,
        [new Date(before), limit],
      ),
  });
  return [
    rule('permits of rate limits', 'gateway_permits', 'bucket', 'ends_at'),
    rule('places for connections', 'gateway_connections', 'bucket, epoch', 'expires_at'),
    rule('sessions of weighted rules', 'gateway_sticky_sessions', 'session', 'seen_at', LONGEST_SESSION_MS),
    {
      ...{ name: 'usage of models behind gateways', keepMs: usageMs },
      forget: (before, limit) => forgetUsage(database, new Date(before), limit),
    },
  ];
}

/** Replaces what a target offers. The vectors of texts that no tool has any more go; the others stay. */
export async function writeOffers(tx: Executor, targetArn: string, { tools, ...others }: Offers): Promise<void> {
  await tx.execute('DELETE FROM gateway_tools WHERE target_arn = $1', [targetArn]);
  await tx.execute('DELETE FROM gateway_offers WHERE target_arn = $1', [targetArn]);
  await tx.execute(
    `INSERT INTO gateway_tools (target_arn, position, tool, digest)
     SELECT $1, ordinality, tool, $3::jsonb ->> (ordinality - 1)::int
     FROM jsonb_array_elements($2::jsonb) WITH ORDINALITY AS t (tool, ordinality)`,
    [targetArn, JSON.stringify(tools), JSON.stringify(tools.map(digestOf))],
  );
  await tx.execute(
    `DELETE FROM gateway_tool_vectors v WHERE target_arn = $1 AND NOT EXISTS (
       SELECT FROM gateway_tools t WHERE t.target_arn = $1 AND t.digest = v.digest)`,
    [targetArn],
  );
  await tx.execute(
    `INSERT INTO gateway_offers (target_arn, kind, position, offer)
     SELECT $1, kind, ordinality, offer
     FROM jsonb_each($2::jsonb) AS k (kind, offers), jsonb_array_elements(offers) WITH ORDINALITY AS t (offer, ordinality)`,
    [targetArn, JSON.stringify(others)],
  );
}

/** What these targets offer, by target, each list in the order of its document. */
export async function readOffers(
  executor: Pick<Executor, 'query'>,
  targetArns: readonly string[],
): Promise<Map<string, Offers>> {
  const rows = await executor.query<{ arn: string; kind: keyof Offers; offers: unknown }>(
    `SELECT target_arn AS arn, 'tools' AS kind, jsonb_agg(tool ORDER BY position) AS offers
     FROM gateway_tools WHERE target_arn = ANY($1) GROUP BY target_arn
     UNION ALL
     SELECT target_arn, kind, jsonb_agg(offer ORDER BY position) FROM gateway_offers
     WHERE target_arn = ANY($1) GROUP BY target_arn, kind`,
    [targetArns],
  );
  const offered = new Map<string, Offers>();
  for (const { arn, kind, offers } of rows)
    offered.set(arn, { ...NO_OFFERS, ...offered.get(arn), [kind]: storedOffers[kind](offers, kind) });
  return offered;
}

/** Bytes of what all other targets of a gateway offer, as JSON. */
export async function bytesOfOthers(tx: Executor, gatewayArn: string, targetArn: string): Promise<number> {
  const [row] = await tx.query<{ bytes: number }>(
    `SELECT coalesce(sum(octet_length(o.offer::text)), 0)::float8 AS bytes FROM (
       SELECT target_arn, tool AS offer FROM gateway_tools UNION ALL SELECT target_arn, offer FROM gateway_offers) o
     JOIN resources r ON r.arn = o.target_arn WHERE r.parent = $1 AND r.arn <> $2`,
    [gatewayArn, targetArn],
  );
  return row?.bytes ?? 0;
}

/** Forgets how the tools of a target were first. */
export async function forgetFirstTools(tx: Executor, targetArn: string): Promise<void> {
  await tx.execute('DELETE FROM gateway_first_tools WHERE target_arn = $1', [targetArn]);
}

/** Remembers the tools that were not there before, and which of the others are no longer what they were. */
export async function compareFirstTools(
  tx: Executor,
  targetArn: string,
  digests: ReadonlyMap<string, string>,
): Promise<void> {
  await tx.execute(
    `INSERT INTO gateway_first_tools AS first (target_arn, name, digest)
     SELECT $1, key, value FROM jsonb_each_text($2::jsonb)
     ON CONFLICT (target_arn, name) DO UPDATE SET changed = true WHERE first.digest <> excluded.digest`,
    [targetArn, JSON.stringify(Object.fromEntries(digests))],
  );
}

/** The names of the tools of a target that changed, in their order, and how many it has had. */
export async function readFirstTools(
  executor: Pick<Executor, 'query'>,
  targetArn: string,
): Promise<{ changed: string[]; count: number }> {
  const [row] = await executor.query<{ changed: string[] | null; count: number }>(
    `SELECT array_agg(name ORDER BY name) FILTER (WHERE changed) AS changed, count(*)::int AS count
     FROM gateway_first_tools WHERE target_arn = $1`,
    [targetArn],
  );
  return { changed: row?.changed ?? [], count: row?.count ?? 0 };
}

/** Keeps the text of a target's document until its tools are made. */
export async function writeDocument(tx: Executor, targetArn: string, document: string | undefined): Promise<void> {
  await tx.execute('DELETE FROM gateway_documents WHERE target_arn = $1', [targetArn]);
  if (document !== undefined)
    await tx.execute('INSERT INTO gateway_documents (target_arn, document) VALUES ($1, $2)', [targetArn, document]);
}

/** The text that `writeDocument` kept; undefined when there is none. */
export async function readDocument(executor: Pick<Executor, 'query'>, targetArn: string): Promise<string | undefined> {
  const [row] = await executor.query<{ document: string }>(
    'SELECT document FROM gateway_documents WHERE target_arn = $1',
    [targetArn],
  );
  return row?.document;
}
