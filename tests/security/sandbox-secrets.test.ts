import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { startPostgres, type TestPostgres } from '../../packages/platform/src/kernel/storage/testing/postgres.ts';
import { onEachProvider } from './each-provider.ts';
import { fillData, type PlatformSecrets, secretAttacks } from './secret-attacks.ts';

let dir: string;
let postgres: TestPostgres;
let secrets: PlatformSecrets;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'sandbox-secrets-'));
  await chmod(dir, 0o777);
  const data = join(dir, 'data');
  const filled = fillData(data);
  postgres = await startPostgres({ listen_addresses: '*', unix_socket_directories: dir });
  const port = Number(new URL(await postgres.createDatabase()).port);
  await filled;
  secrets = { data, port, socket: join(dir, `.s.PGSQL.${port}`) };
});
afterAll(async () => {
  await postgres?.stop();
  await rm(dir, { recursive: true, force: true });
});

onEachProvider(
  (provider) => `what a sandbox (${provider}) gets of the platform's secrets`,
  (title, open) => secretAttacks(title, open, () => secrets),
);
