import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { OciProvider } from '../../packages/platform/src/kernel/sandbox/oci-provider.ts';
import { lacksGvisor } from '../../packages/platform/src/kernel/sandbox/testing/gvisor.ts';
import { startPostgres, type TestPostgres } from '../../packages/platform/src/kernel/storage/testing/postgres.ts';
import { dockerLabs } from './docker-lab.ts';
import { SandboxLab } from './sandbox-lab.ts';
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

secretAttacks(
  'oci',
  (options) => SandboxLab.open(options),
  () => secrets,
);
describe('with a daemon', () => secretAttacks('docker', dockerLabs(), () => secrets));

const lacking = lacksGvisor();
if (lacking) it("what a sandbox (oci with gVisor) gets of the platform's secrets", (context) => context.skip(lacking));
else
  secretAttacks(
    'oci with gVisor',
    (options) => SandboxLab.open(options, (given) => new OciProvider({ ...given, runtime: 'runsc' })),
    () => secrets,
  );
