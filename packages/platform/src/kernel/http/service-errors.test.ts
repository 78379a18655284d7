import { expect, it } from 'vitest';
import { SandboxError } from '../sandbox/index.ts';
import type { Database } from '../storage/index.ts';
import { temporaryPglite } from '../storage/testing/databases.ts';
import { toServiceError } from './service-errors.ts';

async function thrown(run: (database: Database) => Promise<unknown>, database: Database): Promise<unknown> {
  return run(database).then(
    () => undefined,
    (error: unknown) => error,
  );
}

it('tells a caller of a character that cannot be stored, and keeps our own defects to us', async () => {
  const { database, dispose } = await temporaryPglite();
  try {
    const store = (text: string) => (db: Database) =>
      db.query('SELECT $1::text AS text, $2::jsonb AS json', [text, JSON.stringify({ text })]);
    expect(await thrown(store('plain'), database)).toBeUndefined();
    const asText = await thrown((db) => db.query('SELECT $1::text AS text', ['a\0b']), database);
    const asJson = await thrown(
      (db) => db.query('SELECT $1::jsonb AS json', [JSON.stringify({ text: 'a\0b' })]),
      database,
    );
    for (const error of [asText, asJson])
      expect(toServiceError(error)).toMatchObject({ code: 'ValidationException', status: 400 });
    expect(toServiceError(await thrown((db) => db.query('SELECT * FROM nowhere'), database))).toBeUndefined();
  } finally {
    await dispose();
  }
});

it('names a full disk whatever needed it, and only that', () => {
  const inTheWay = (code: string) =>
    new SandboxError('failed', 'no', { cause: new Error('why', { cause: Object.assign(new Error('x'), { code }) }) });
  for (const code of ['ENOSPC', 'EDQUOT'])
    expect(toServiceError(inTheWay(code))).toMatchObject({ code: 'ServiceUnavailableException', status: 503 });
  expect(toServiceError(inTheWay('EACCES'))).toBeUndefined();
  const endless = new Error('its own cause');
  endless.cause = endless;
  expect(toServiceError(endless)).toBeUndefined();
});
