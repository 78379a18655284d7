import type { AuditRecord } from '../../kernel/http/index.ts';
import type { Sink } from '../../kernel/journal/index.ts';
import { addMetered, counted, type Metered, type Unit } from '../../kernel/metering/index.ts';
import type { Executor } from '../../kernel/storage/index.ts';
import { number, object, orAbsent, type Shape, stored, text } from '../../kernel/stored-shape.ts';
import { beginOf, type ChainedRow, type Head, hashOf, rowOf } from './audit-row.ts';
import { writeHeadFile } from './head-file.ts';

const AUDITED: Shape<AuditRecord> = object(
  {
    ...{ at: number, requestId: text, operation: text, accountId: orAbsent(text), principal: orAbsent(text) },
    ...{ resource: orAbsent(text), status: number, errorCode: orAbsent(text), sourceIp: orAbsent(text) },
    userAgent: orAbsent(text),
  },
  { count: number, until: number, sessionId: text, onBehalfOf: text },
);

/**
 * Takes audit records from the journal into the table `audit`, each hashed with the one before it: a chain for each journal. The same records give the
 * same chain however they are batched, so that its end may be noted beside the journal before it is committed.
 */
export const auditSink: Sink<AuditRecord> = {
  parse: stored(AUDITED).parse,
  async apply(tx, records, { id: chain, directory }) {
    const found = await lockHead(tx, chain);
    let { seq, hash } = found;
    const rows = records.map(({ data }): ChainedRow => {
      const row = rowOf(data);
      const place = { chain, seq: seq + 1, previous: hash };
      hash = hashOf(row, place);
      seq = place.seq;
      return { ...row, ...place, hash };
    });
    const last = rows.at(-1);
    if (!last) return;
    await tx.execute(INSERT, [JSON.stringify(rows)]);
    await tx.execute('UPDATE audit_chains SET seq = $2, hash = $3 WHERE chain = $1', [chain, seq, hash]);
    const step = {
      first: records[0]?.seq ?? 0,
      last: records.at(-1)?.seq ?? 0,
      found,
      after: { seq, hash },
      at: last.at,
    };
    await addMetered(tx, rows.flatMap(usesOf));
    await writeHeadFile(directory, step);
  },
};

/** What is billed by the request: each that succeeded is a row, so that none is counted twice or left out. */
function usesOf({ operation, status, at, count, ...row }: ChainedRow): Metered[] {
  const used = status < 400 ? USES[operation] : undefined;
  if (used === undefined || row.accountId === null) return [];
  const { accountId, resource, sessionId, onBehalfOf, principal } = row;
  const whose = {
    accountId,
    resourceArn: (resource ?? '').split('/runtime-endpoint/')[0] ?? '',
    sessionId: sessionId ?? '',
    userId: onBehalfOf ?? principal ?? '',
  };
  const [unit, piece] = used;
  return [{ ...counted(unit, whose, { at, quantity: count }), piece }];
}

const USES: Readonly<Partial<Record<string, readonly [Unit, piece: string]>>> = {
  CreateEvent: ['memory-events', 'memory'],
  RetrieveMemoryRecords: ['memory-retrievals', 'memory'],
  InvokeAgentRuntime: ['invocations', 'runtime'],
  InvokeHarness: ['invocations', 'runtime'],
  InvokeCodeInterpreter: ['invocations', 'code-interpreter'],
  InvokeBrowser: ['invocations', 'browser'],
};

async function lockHead(tx: Executor, chain: string): Promise<Head> {
  const begin = beginOf(chain);
  await tx.execute('INSERT INTO audit_chains VALUES ($1, $2, $3) ON CONFLICT DO NOTHING', [
    chain,
    begin.seq,
    begin.hash,
  ]);
  const [head] = await tx.query<Head>('SELECT seq, hash FROM audit_chains WHERE chain = $1 FOR UPDATE', [chain]);
  return head ?? begin;
}

const INSERT = `
  INSERT INTO audit (request_id, at, operation, account_id, principal, resource, status, error_code, source_ip, user_agent,
    count, until, session_id, on_behalf_of, chain, seq, previous, hash)
  SELECT "requestId", at, operation, "accountId", principal, resource, status, "errorCode", "sourceIp", "userAgent",
    count, until, "sessionId", "onBehalfOf", chain, seq, decode(previous, 'hex'), decode(hash, 'hex')
  FROM json_to_recordset($1::json) AS r("requestId" text, at bigint, operation text, "accountId" text, principal text,
    resource text, status integer, "errorCode" text, "sourceIp" text, "userAgent" text, count integer, until bigint,
    "sessionId" text, "onBehalfOf" text, chain text, seq bigint, previous text, hash text)`;
