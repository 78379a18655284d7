import { expect, it } from 'vitest';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import type { RequestContext } from '../../../kernel/service.ts';
import { storageMigrations } from '../../../kernel/storage/index.ts';
import { describeDatabases } from '../../../kernel/storage/testing/databases.ts';
import type { CredentialProviders } from '../providers/credential-providers.ts';
import type { Oauth2Settings } from '../providers/oauth2-provider.ts';
import { PortalSessions, portalMigrations } from './portal-sessions.ts';
import { Portals } from './portals.ts';

const ACCOUNT = '111122223333';
const PROVIDER = `arn:aws:bedrock-agentcore:us-east-1:${ACCOUNT}:token-vault/default/oauth2credentialprovider`;

describeDatabases('consent portals', [...storageMigrations, ...portalMigrations], (database) => {
  it('are changed and deleted with their sessions, or not at all', async () => {
    const clock = new FakeClock();
    const sessions = new PortalSessions({ database: database(), clock });
    let fails = false;
    const endAll = sessions.endAll.bind(sessions);
    sessions.endAll = async (...given) => {
      if (fails) throw new Error('the database is away');
      return endAll(...given);
    };
    const portals = new Portals({
      ...{ database: database(), clock, region: 'us-east-1', sessions },
      providers: {
        arnOf: (_accountId: string, name: string) => `${PROVIDER}/${name}`,
        get: async () => ({ data: { oauthDiscovery: { discoveryUrl: 'https://id.example/' } } }),
      } as unknown as CredentialProviders<Oauth2Settings>,
      roleExists: async () => true,
      newIdSuffix: () => 'a1b2c3d4e5',
    });
    const ctx = { accountId: ACCOUNT, require: async () => undefined } as unknown as RequestContext;
    const by = (name: string) => ({ credentialProviderArn: `${PROVIDER}/${name}`, scopes: [] });
    const made = await portals.create(
      { ...{ name: 'people', executionRoleArn: 'role', sources: [] }, idpConfig: by('staff') },
      ctx,
    );
    const user = { issuer: 'https://id.example', subject: 'ada' };
    const change = () => portals.update({ consentPortalIdentifier: made.id, idpConfig: by('others') }, ctx);
    const signedIn = () => sessions.find('cookie', made.arn);
    await sessions.begin('cookie', made.arn, user);
    // One who is signed in by the old provider is never a user of the new one's portal.
    fails = true;
    await expect(change()).rejects.toThrow('away');
    await expect(portals.delete(ACCOUNT, made.id)).rejects.toThrow('away');
    expect((await portals.get(ACCOUNT, made.id)).idpConfig).toEqual(by('staff'));
    expect(await signedIn()).toEqual(user);
    fails = false;
    await change();
    expect(await signedIn()).toBeUndefined();
    await sessions.begin('cookie', made.arn, user);
    await portals.delete(ACCOUNT, made.id);
    expect(await signedIn()).toBeUndefined();
  });
});
