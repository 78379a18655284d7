import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { startPostgres } from '../../packages/platform/src/kernel/storage/testing/postgres.ts';
import { startTestPlatform } from '../support/platform-process.ts';

const ROOT = resolve(import.meta.dirname, '../..');

/** What a platform on that database says of itself, at its start and to `agentcore doctor`. */
async function onDatabase(databaseUrl: string) {
  const platform = await startTestPlatform({
    args: ['--sandbox', 'process'],
    env: { AGENTPLATFORM_DATABASE_URL: databaseUrl },
  });
  try {
    const doctor = [join(ROOT, 'packages/cli/bin/agentcore.mjs'), 'doctor', '--json'];
    const env = { ...process.env, ...platform.env };
    // It ends with 1 where nothing isolates.
    const { stdout } = await promisify(execFile)(process.execPath, doctor, { env }).catch((error) => error);
    return { said: platform.log(), database: JSON.parse(stdout).database };
  } finally {
    await platform.dispose();
  }
}

it('a PostgreSQL without pgvector is served, and the start and doctor say what to do', async () => {
  await using postgres = await startPostgres({}, { without: 'vector' });
  const { said, database } = await onDatabase(await postgres.createDatabase());
  expect(said).toContain('memory searches by words alone: this PostgreSQL has no pgvector; install it there');
  expect(database).toEqual({
    kind: 'postgres',
    missing: [
      {
        what: 'search by meaning: this PostgreSQL has no pgvector',
        remedy: expect.stringContaining('run CREATE EXTENSION vector in the database as a superuser'),
      },
    ],
  });
});

it('a role that may not enable pgvector is told that, and where somebody has enabled it nothing is missing', async () => {
  await using postgres = await startPostgres();
  const [one, other] = [await postgres.createDatabase(), await postgres.createDatabase()];
  await postgres.exec(one, 'CREATE ROLE limited LOGIN');
  for (const url of [one, other]) await postgres.exec(url, 'GRANT ALL ON SCHEMA public TO limited');
  const limited = (url: string): string => url.replace('postgres@', 'limited@');
  const { said, database } = await onDatabase(limited(one));
  expect(said).toContain('pgvector is not enabled in this database, and the platform may not do it; run CREATE');
  expect(database.missing).toMatchObject([{ remedy: expect.not.stringContaining('install') }]);
  await postgres.exec(other, 'CREATE EXTENSION vector');
  const after = await onDatabase(limited(other));
  expect(after.said).not.toContain('pgvector');
  expect(after.database).toEqual({ kind: 'postgres', missing: [] });
});
