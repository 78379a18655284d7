import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { startTestPlatform } from '../support/platform-process.ts';
import { fileSystems } from './file-systems.ts';

fileSystems(() => []);

describe('a server that cannot mount', () => {
  it('refuses file systems by their name when its sandboxes are bare processes', async () => {
    const bare = await startTestPlatform({ args: ['--sandbox', 'process'] });
    const bareClients = clientsOf(bare);
    try {
      await expect(
        deployAgent(bare, bareClients, {
          folder: join(import.meta.dirname, '../support/probe-agent'),
          filesystemConfigurations: [{ sessionStorage: { mountPath: '/mnt/kept' } }],
        }),
      ).rejects.toMatchObject({
        name: 'ValidationException',
        message: expect.stringMatching(/filesystemConfigurations is not offered .*provider process/),
      });
    } finally {
      bareClients.close();
      await bare.dispose();
    }
  });
});
