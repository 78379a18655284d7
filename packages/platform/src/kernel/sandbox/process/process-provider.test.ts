import pino from 'pino';
import { expect, it } from 'vitest';
import { systemClock } from '../../clock.ts';
import { sandboxContract } from '../testing/sandbox-contract.ts';
import { testStage } from '../testing/test-stage.ts';
import { ProcessProvider, type ProcessProviderOptions } from './process-provider.ts';

process.env.SECRET_OF_SERVER = 'must not be seen';
const base = { stage: testStage, clock: systemClock, log: pino({ level: 'silent' }) };

sandboxContract('process', {
  provider: (dataDir) => new ProcessProvider({ ...base, dataDir, acceptNoIsolation: true }),
  image: async () => ({
    digest: 'sha256:host',
    rootfs: '',
    config: { entrypoint: [], cmd: [], env: ['FROM_IMAGE=yes'], workingDir: '', user: '' },
  }),
});

it('refuses to exist unless it is asked for', () => {
  const options: object = { ...base, dataDir: '/nonexistent' };
  expect(() => new ProcessProvider(options as ProcessProviderOptions)).toThrow(/isolates nothing/);
});

it('declares what it cannot enforce and refuses mounts', async () => {
  const provider = new ProcessProvider({ ...base, dataDir: '/nonexistent', acceptNoIsolation: true });
  expect(await provider.probe()).toMatchObject({
    isolation: 'none',
    unenforced: ['filesystem', 'network', 'users', 'cpu', 'memory', 'pids', 'disk'],
  });
});
