import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { createPaginator } from '@agentplatform/contract';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FakeClock } from '../../kernel/fake-clock.ts';
import type { AuditRecord } from '../../kernel/http/index.ts';
import { describeDatabases } from '../../kernel/storage/testing/databases.ts';
import { exportAudit } from './export.ts';
import { type Audit, auditMigrations, auditSink, createAudit } from './index.ts';
import { lookupEvents, readLookup } from './lookup-events.ts';
import type { Finding } from './verify.ts';

const DAY = 24 * 3_600_000;
const ACCOUNT = '123456789012';

describeDatabases('the audit trail', auditMigrations, (database) => {
  let directory: string;
  let clock: FakeClock;
  let audit: Audit;
  let journalSeq: number;
  const chain = 'journal-a';

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'agentplatform-audit-'));
    clock = new FakeClock();
    journalSeq = 0;
    await tampered('TRUNCATE audit');
    await database().exec('TRUNCATE audit_chains, audit_joins, audit_checkpoints');
    audit = open();
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  const open = (seed = 7): Audit =>
    createAudit({
      database: database(),
      journal: { flush: async () => undefined, origin: { id: chain, directory } },
      ...{ seed: Buffer.alloc(32, seed), keepMs: 90 * DAY, clock, region: 'us-east-1', accountId: ACCOUNT },
      paginator,
    });
  /** As the journal does: so many records in one transaction. */
  const write = async (count: number, over: Partial<AuditRecord> = {}, id = chain): Promise<void> => {
    const records = Array.from({ length: count }, () => ({ seq: ++journalSeq, data: recordOf(journalSeq, over) }));
    await database().transaction((tx) => auditSink.apply(tx, records, { id, directory }));
  };
  const recordOf = (n: number, over: Partial<AuditRecord>): AuditRecord => ({
    ...{ at: clock.now() + n, requestId: `request-${n}`, operation: 'CreateMemory', accountId: ACCOUNT },
    ...{
      principal: `arn:aws:iam::${ACCOUNT}:user/mate`,
      resource: `arn:aws:bedrock-agentcore:us-east-1:${ACCOUNT}:memory/m`,
    },
    ...{ status: 200, errorCode: undefined, sourceIp: '127.0.0.1', userAgent: 'test' },
    ...over,
  });
  /** As somebody does who may do anything in the database. */
  const tampered = (...statements: string[]): Promise<unknown> =>
    database().exec(
      `ALTER TABLE audit DISABLE TRIGGER audit_is_append_only; ${statements.join(';')}; ALTER TABLE audit ENABLE TRIGGER audit_is_append_only`,
    );
  const findings = async (): Promise<Finding[]> => (await audit.verify()).findings;
  const found = async (): Promise<unknown[]> => (await findings()).map(({ what, from, to }) => [what, from, to]);

  it('is intact as it was written, in whatever batches, and says how far each chain goes', async () => {
    await write(3);
    await write(2, { principal: undefined, accountId: undefined, sourceIp: undefined, errorCode: 'X', status: 403 });
    await write(1, {
      count: 4,
      until: clock.now() + 5.5,
      at: clock.now() + 0.4,
      sessionId: 's'.repeat(33),
      onBehalfOf: 'ü',
    });
    await audit.join();
    await write(1);
    expect(await audit.verify()).toMatchObject({
      ...{ intact: true, findings: [], more: false, joins: 1, unchained: 0 },
      chains: [{ chain, seq: 7, rows: 7 }],
      publicKey: expect.stringContaining('BEGIN PUBLIC KEY'),
    });
  });

  it('finds a row that was changed, and which', async () => {
    await write(5);
    await tampered("UPDATE audit SET principal = 'arn:aws:iam::123456789012:user/other' WHERE seq = 3");
    expect(await findings()).toEqual([
      { what: 'CHANGED', chain, from: 3, to: 3, requestId: 'request-3', message: expect.any(String) },
    ]);
  });

  it('finds a row that was removed, and which', async () => {
    await write(5);
    await tampered('DELETE FROM audit WHERE seq IN (2, 3)');
    expect(await found()).toEqual([['REMOVED', 2, 3]]);
  });

  it('finds rows that changed places, and where they stood', async () => {
    await write(5);
    await tampered(
      'UPDATE audit SET seq = -2 WHERE seq = 2',
      'UPDATE audit SET seq = 2 WHERE seq = 4',
      'UPDATE audit SET seq = 4 WHERE seq = -2',
    );
    expect((await findings()).map(({ what, from, message }) => [what, from, message])).toEqual([
      ['REORDERED', 2, 'The row stood at 4.'],
      ['REORDERED', 4, 'The row stood at 2.'],
    ]);
  });

  it('finds an end that was cut off, also where the head of the chain was set back', async () => {
    await write(3);
    const [three] = await database().query<{ hash: string }>('SELECT hash FROM audit_chains');
    await write(2);
    await tampered('DELETE FROM audit WHERE seq > 3');
    expect(await found()).toEqual([['CUT_OFF', 4, 5]]);
    await database().execute('UPDATE audit_chains SET seq = 3, hash = $1', [three?.hash]);
    expect(await found()).toEqual([['CUT_OFF', 4, 5]]);
    // It stays found when the chain has gone on over the gap.
    await write(3);
    expect(await found()).toEqual([['CUT_OFF', 4, 5]]);
  });

  it('finds rows that were written anew with hashes of their own', async () => {
    await write(2);
    await audit.join();
    await write(2);
    await audit.join();
    const file = join(directory, 'audit-head.json');
    const known = await readFile(file);
    // The whole chain again by the same rules, with one row of another caller; the server's own file is put back.
    await tampered('TRUNCATE audit');
    await database().exec('TRUNCATE audit_chains');
    journalSeq = 0;
    await write(2);
    await write(2, { principal: 'arn:aws:iam::123456789012:user/other' });
    await writeFile(file, known);
    expect(await found()).toEqual([['CHANGED', 3, 4]]);
  });

  it('finds a chain that is gone altogether, and joins that were cut off or forged', async () => {
    await write(2);
    await write(2, {}, 'journal-b');
    await rm(join(directory, 'audit-head.json'));
    await audit.join();
    await tampered("DELETE FROM audit WHERE chain = 'journal-b'");
    await database().exec("DELETE FROM audit_chains WHERE chain = 'journal-b'");
    expect((await findings()).map(({ what, chain: of, to }) => [what, of, to])).toEqual([['CUT_OFF', 'journal-b', 2]]);
    await database().exec('TRUNCATE audit_joins');
    expect(await findings()).toEqual([{ what: 'CUT_OFF', message: expect.stringContaining('seen join 1') }]);
    await database().exec("INSERT INTO audit_joins VALUES (1, 1, '', '[]', 'made up', 'c2lnbmVk')");
    expect((await findings()).map(({ what }) => what)).toEqual(expect.arrayContaining(['FORGED']));
  });

  it('tells what retention has removed from what somebody else has', async () => {
    await write(3);
    clock.jump(50 * DAY);
    await write(3);
    clock.jump(60 * DAY);
    const [rule] = audit.retention;
    expect(await rule?.forget(clock.now() - 90 * DAY, 2)).toBe(2);
    expect(await rule?.forget(clock.now() - 90 * DAY, 2)).toBe(1);
    expect(await rule?.forget(clock.now() - 90 * DAY, 2)).toBe(0);
    expect(await audit.verify()).toMatchObject({
      intact: true,
      chains: [{ seq: 6, rows: 3, expired: { upTo: 3, rows: 3, at: clock.now() } }],
    });
    await tampered('DELETE FROM audit WHERE seq = 4');
    expect(await found()).toEqual([['REMOVED', 4, 4]]);
  });

  it('believes no checkpoint that another key has signed', async () => {
    await write(3);
    clock.jump(100 * DAY);
    await open(8).retention[0]?.forget(clock.now() - 90 * DAY, 10);
    expect(await found()).toEqual([
      ['FORGED', undefined, 3],
      ['CUT_OFF', 1, 3],
    ]);
  });

  it('counts rows of before there were chains, and finds those that were slipped in later', async () => {
    const slip = (at: number): Promise<unknown> =>
      database().execute(
        `INSERT INTO audit (request_id, at, operation, status) VALUES ('x', $1, 'DeleteMemory', 200)`,
        [at],
      );
    await slip(clock.now() - DAY);
    await write(1);
    await audit.join();
    expect(await audit.verify()).toMatchObject({ intact: true, unchained: 1 });
    await slip(clock.now() + DAY);
    expect((await findings()).map(({ what }) => what)).toEqual(['UNCHAINED']);
  });

  it('is append-only in the database itself', async () => {
    await write(2);
    for (const statement of ['DELETE FROM audit', 'UPDATE audit SET status = 1', 'TRUNCATE audit'])
      await expect(database().exec(statement)).rejects.toThrow('not changed');
    expect(await found()).toEqual([]);
  });

  it('says nothing of a batch that was refused and came again', async () => {
    await write(2);
    const records = [1, 2].map((n) => ({ seq: journalSeq + n, data: recordOf(n, {}) }));
    const refused = database().transaction(async (tx) => {
      await auditSink.apply(tx, records, { id: chain, directory });
      throw new Error('the commit failed');
    });
    await expect(refused).rejects.toThrow('the commit failed');
    for (const one of records)
      await database().transaction((tx) => auditSink.apply(tx, [one], { id: chain, directory }));
    expect(await audit.verify()).toMatchObject({ intact: true, chains: [{ seq: 4 }] });
  });

  it('goes on over a file of its end that is damaged, and tells of it', async () => {
    await write(1);
    await writeFile(join(directory, 'audit-head.json'), '{"cut');
    await expect(audit.verify()).rejects.toThrow(SyntaxError);
    await write(1);
    expect((await findings()).map(({ what, message }) => [what, message])).toEqual([
      ['CUT_OFF', expect.stringContaining('had left it')],
    ]);
  });

  it('is exported as events of CloudTrail, one a line, in the order of the chain', async () => {
    await write(1200, { sessionId: 'session', onBehalfOf: 'user-7' });
    await write(1, {
      operation: 'iam:CreateRole',
      principal: undefined,
      accountId: undefined,
      status: 403,
      errorCode: 'AccessDenied',
      count: 9,
      until: clock.now(),
    });
    const place = { region: 'us-east-1', accountId: ACCOUNT };
    const lines = (
      await text(Readable.from(exportAudit(database(), { from: 0, to: Number.MAX_SAFE_INTEGER }, place)))
    ).split('\n');
    expect(lines).toHaveLength(1202);
    const events = lines.slice(0, -1).map((line) => JSON.parse(line));
    expect(events[0]).toMatchObject({
      ...{ eventVersion: '1.11', eventName: 'CreateMemory', eventSource: 'bedrock-agentcore.amazonaws.com' },
      ...{ awsRegion: 'us-east-1', requestID: 'request-1', readOnly: false, eventCategory: 'Management' },
      userIdentity: { type: 'IAMUser', userName: 'mate', accountId: ACCOUNT },
      resources: [{ type: 'AWS::BedrockAgentCore::Memory' }],
      additionalEventData: { status: 200, sessionId: 'session', onBehalfOf: 'user-7', seq: 1 },
      ...{ requestParameters: null, responseElements: null },
    });
    expect(events.map((event) => event.additionalEventData.seq)).toEqual(Array.from({ length: 1201 }, (_, n) => n + 1));
    expect(events[1200]).toMatchObject({
      ...{ eventName: 'CreateRole', eventSource: 'iam.amazonaws.com', errorCode: 'AccessDenied' },
      userIdentity: { type: 'Unknown' },
      additionalEventData: { count: 9 },
    });
    const later = Readable.from(exportAudit(database(), { from: clock.now() + 1200, to: clock.now() + 1201 }, place));
    expect((await text(later)).split('\n')).toHaveLength(2);
  });

  it('is looked up by pages and by attributes', async () => {
    await write(4);
    await write(3, { operation: 'iam:CreateRole', resource: `arn:aws:iam::${ACCOUNT}:role/mate` });
    const deps = { database: database(), paginator, region: 'us-east-1', accountId: ACCOUNT };
    const look = (body: Record<string, unknown>) => lookupEvents(deps, readLookup(body));
    const first = await look({ MaxResults: 5 });
    expect(first.Events.map(({ EventName }) => EventName)).toEqual([
      ...Array(3).fill('CreateRole'),
      'CreateMemory',
      'CreateMemory',
    ]);
    const second = await look({ MaxResults: 5, NextToken: first.NextToken });
    expect(second.Events).toHaveLength(2);
    expect(second.NextToken).toBeUndefined();
    const by = async (AttributeKey: string, AttributeValue: string): Promise<number> =>
      (await look({ LookupAttributes: [{ AttributeKey, AttributeValue }] })).Events.length;
    expect(await by('EventName', 'CreateRole')).toBe(3);
    expect(await by('EventId', first.Events[0]?.EventId ?? '')).toBe(1);
    expect(await by('ReadOnly', 'true')).toBe(0);
    expect(await by('Username', 'mate')).toBe(7);
    expect(await by('ResourceName', 'mate')).toBe(3);
    expect(await by('ResourceType', 'AWS::BedrockAgentCore::Memory')).toBe(4);
    expect(await by('EventSource', 'iam.amazonaws.com')).toBe(3);
    expect(await by('AccessKeyId', 'AKIA')).toBe(0);
    expect((await look({ StartTime: clock.now() / 1000 + 0.006 })).Events).toHaveLength(2);
    const { NextToken } = await look({ MaxResults: 1 });
    await expect(look({ MaxResults: 1, EndTime: 1, NextToken })).rejects.toThrow('NextToken');
  });

  it.each([
    ['InvalidMaxResultsException', { MaxResults: 51 }],
    ['InvalidMaxResultsException', { MaxResults: 0 }],
    ['InvalidMaxResultsException', { MaxResults: '5' }],
    ['InvalidNextTokenException', { NextToken: 7 }],
    ['InvalidLookupAttributesException', { LookupAttributes: {} }],
    ['InvalidLookupAttributesException', { LookupAttributes: [null] }],
    ['InvalidLookupAttributesException', { LookupAttributes: [{ AttributeKey: 'Nothing', AttributeValue: 'x' }] }],
    ['InvalidLookupAttributesException', { LookupAttributes: [{ AttributeKey: 'EventId', AttributeValue: '' }] }],
    ['InvalidTimeRangeException', { StartTime: 'yesterday' }],
    ['InvalidTimeRangeException', { StartTime: 2, EndTime: 1 }],
    ['InvalidTimeRangeException', { StartTime: 1e300 }],
  ])('refuses a lookup with %s: %o', (code, body) => {
    expect(() => readLookup(body)).toThrow(expect.objectContaining({ code }));
  });
});

const paginator = createPaginator(Buffer.alloc(32, 1));
