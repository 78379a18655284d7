import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GetResourceOauth2TokenCommand, GetWorkloadAccessTokenCommand } from '@aws-sdk/client-bedrock-agentcore';
import { CreateWorkloadIdentityCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ConsentProvider } from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectConsentProvider } from '../support/consent-platform.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const args = ['--allow-private-egress', '127.0.0.0/8'];
/** Less than a lease on a token lasts, and more than a provider takes. */
const BEFORE_IT_LAPSES_MS = 40_000;
let dataDir: string;
let platform: TestPlatform;
let clients: Clients;
let provider: ConsentProvider;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'identity-lease-'));
  platform = await startTestPlatform({ dataDir, args });
  clients = clientsOf(platform);
  provider = await connectConsentProvider(clients, 'orders');
  await clients.control.send(new CreateWorkloadIdentityCommand({ name: 'assistant' }));
});

afterAll(async () => {
  clients?.close();
  await platform?.end();
  await provider?.close();
  if (dataDir) await rm(dataDir, { recursive: true, force: true });
});

async function token(): Promise<string | undefined> {
  const { workloadAccessToken } = await clients.data.send(
    new GetWorkloadAccessTokenCommand({ workloadName: 'assistant' }),
  );
  const command = new GetResourceOauth2TokenCommand({
    ...{ workloadIdentityToken: workloadAccessToken, resourceCredentialProviderName: 'orders' },
    ...{ scopes: ['read'], oauth2Flow: 'M2M' },
  });
  return (await clients.data.send(command)).accessToken;
}

it('a server that is killed while it fetches a token fetches it at once when it is back', async () => {
  const asked = Promise.withResolvers<void>();
  provider.instead(() => asked.resolve());
  const fetching = token();
  fetching.catch(() => undefined);
  await asked.promise;
  await platform.end('SIGKILL');
  await expect(fetching).rejects.toThrow();
  provider.instead(undefined);
  clients.close();
  platform = await startTestPlatform({ dataDir, args });
  clients = clientsOf(platform);
  const late = new Promise<string>((done) => setTimeout(done, BEFORE_IT_LAPSES_MS, 'too late').unref());
  expect(await provider.isActive((await Promise.race([token(), late])) ?? '')).toBe(true);
});
