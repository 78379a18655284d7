import { afterAll, beforeAll, expect, it } from 'vitest';
import { secretMigrations } from '../../../kernel/secrets/index.ts';
import type { RequestContext } from '../../../kernel/service.ts';
import { storageMigrations } from '../../../kernel/storage/index.ts';
import { describeDatabases } from '../../../kernel/storage/testing/databases.ts';
import type { Oauth2Provider } from '../providers/oauth2-provider.ts';
import {
  type Oauth2ProviderOperationsDeps,
  oauth2ProviderOperations,
} from '../providers/oauth2-provider-operations.ts';
import { type WorkloadOperationsDeps, workloadOperations } from '../workloads/workload-operations.ts';
import { flowMigrations } from './tables.ts';
import type { ConsentProvider } from './testing/consent-provider.ts';
import { ACCOUNT, type FlowLab, openConsentLab } from './testing/flow-lab.ts';

/** What operations need of the platform beside what they change. */
const elsewhere = {
  refusalOf: async () => undefined,
  certificateAuthority: async () => undefined,
  callbackUrl: () => 'https://agents.example/back',
};

describeDatabases('what is forgotten', [...storageMigrations, ...secretMigrations, ...flowMigrations], (database) => {
  let lab: FlowLab;
  let server: ConsentProvider;
  let provider: Oauth2Provider;
  let ctx: RequestContext;

  beforeAll(async () => {
    ({ lab, server, provider } = await openConsentLab(database()));
    ctx = { ...lab.caller } as RequestContext;
  });

  afterAll(async () => {
    await lab?.close();
    await server?.close();
  });

  /** A token of the agent itself; how many there are then. */
  async function withToken(scope = 'read'): Promise<number> {
    await lab.first.machine(lab.request(provider, { scopes: [scope] }), lab.caller, lab);
    return stored();
  }
  const stored = async (): Promise<number> => (await database().query('SELECT key FROM identity_tokens')).length;
  const fails = async (): Promise<never> => {
    throw new Error('the database is away');
  };
  const providersWith = (forget: Oauth2ProviderOperationsDeps['forget']) =>
    oauth2ProviderOperations({
      ...({ ...elsewhere, providers: lab.providers, forget } as unknown as Oauth2ProviderOperationsDeps),
      vaults: lab.vaults,
    });
  const workloadsWith = (forget: WorkloadOperationsDeps['forget']) =>
    workloadOperations({ identities: lab.identities, forget } as unknown as WorkloadOperationsDeps);
  const asAnotherClient = () => ({
    name: provider.name,
    credentialProviderVendor: 'CustomOauth2' as const,
    oauth2ProviderConfigInput: {
      customOauth2ProviderConfig: { oauthDiscovery: provider.data.oauthDiscovery, clientId: 'another-client' },
    },
  });

  it('of a provider goes with its change, or the provider is as it was', async () => {
    expect(await withToken()).toBe(1);
    const update = (forget: Oauth2ProviderOperationsDeps['forget']) =>
      providersWith(forget).UpdateOauth2CredentialProvider.handle(asAnotherClient(), ctx);
    await expect(update(fails)).rejects.toThrow('away');
    expect((await lab.providers.read(ACCOUNT, provider.name))?.data.clientId).toBe('the-agents');
    expect(await stored()).toBe(1);
    await update(lab.first.forget);
    expect((await lab.providers.read(ACCOUNT, provider.name))?.data.clientId).toBe('another-client');
    expect(await stored()).toBe(0);
  });

  it('of an agent goes with it, or the agent stays', async () => {
    const other = await lab.provider({ oauthDiscovery: provider.data.oauthDiscovery });
    provider = other;
    expect(await withToken()).toBe(1);
    const remove = (forget: WorkloadOperationsDeps['forget']) =>
      workloadsWith(forget).DeleteWorkloadIdentity.handle({ name: 'assistant' }, ctx);
    await expect(remove(fails)).rejects.toThrow('away');
    expect(await lab.identities.find(ACCOUNT, 'assistant')).toBeDefined();
    expect(await stored()).toBe(1);
    await remove(lab.first.forget);
    expect(await lab.identities.find(ACCOUNT, 'assistant')).toBeUndefined();
    expect(await stored()).toBe(0);
    await lab.workload('assistant');
  });

  it('of a provider goes with it, or the provider stays', async () => {
    expect(await withToken()).toBe(1);
    const remove = (forget: Oauth2ProviderOperationsDeps['forget']) =>
      providersWith(forget).DeleteOauth2CredentialProvider.handle({ name: provider.name }, ctx);
    await expect(remove(fails)).rejects.toThrow('away');
    expect(await withToken('write')).toBe(2);
    await remove(lab.first.forget);
    expect(await lab.providers.read(ACCOUNT, provider.name)).toBeUndefined();
    expect(await stored()).toBe(0);
  });
});
