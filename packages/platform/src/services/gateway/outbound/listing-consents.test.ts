import { expect, it } from 'vitest';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import type { Gateway } from '../gateways/gateway.ts';
import type { TargetDefinition } from '../targets/target.ts';
import { ListingConsents, needsConsentToList } from './listing-consents.ts';
import type { TargetCredentials } from './target-credentials.ts';

type Answer = Awaited<ReturnType<TargetCredentials['consent']>>;

// What is read of it.
const gateway = { id: 'tools-0123456789' } as Gateway;
const { signal } = new AbortController();
const endpoint = 'https://docs.example.com/mcp';

function definition(grantType: 'AUTHORIZATION_CODE' | 'CLIENT_CREDENTIALS', more: object = {}): TargetDefinition {
  const oauthCredentialProvider = { providerArn: 'arn', scopes: [], grantType };
  return {
    targetConfiguration: { mcp: { mcpServer: { endpoint, ...more } } },
    credentialProviderConfigurations: [
      { credentialProviderType: 'OAUTH', credentialProvider: { oauthCredentialProvider } },
    ],
  };
}

it('says why a consent does not come: it was denied, or nobody gave it in time', async () => {
  const clock = new FakeClock();
  let answer: Answer = { authorizationUrl: 'https://here/consent', sessionUri: 'urn:1', sessionStatus: 'IN_PROGRESS' };
  const consents = new ListingConsents({
    clock,
    credentials: { consent: async () => answer },
    newIdSuffix: () => 'abcdefghij',
  });
  const wanted = definition('AUTHORIZATION_CODE');
  const begun = await consents.begin(gateway, { id: 'TARGET0001', consent: undefined }, wanted, signal);
  expect(begun).toMatchObject({ userId: 'tools-0123456789_TARGET0001_abcdefghij', url: 'https://here/consent' });
  if (!begun) throw new Error('nothing was begun');
  const state = () => consents.stateOf(gateway, begun, wanted, signal);
  expect(await state()).toBe('awaited');
  answer = { sessionStatus: 'FAILED' };
  expect(await state()).toMatchObject({ failure: expect.stringContaining('it was denied') });
  await clock.advance(600_000);
  expect(await state()).toMatchObject({ failure: expect.stringContaining('within ten minutes') });
  answer = { accessToken: 'token' };
  expect(await state()).toBe('given');
  const { userId } = begun;
  expect(await consents.begin(gateway, { id: 'TARGET0001', consent: { userId } }, wanted, signal)).toEqual({ userId });
});

it.each([
  [definition('AUTHORIZATION_CODE'), true],
  [definition('CLIENT_CREDENTIALS'), false],
  [definition('AUTHORIZATION_CODE', { listingMode: 'DYNAMIC' }), false],
  [definition('AUTHORIZATION_CODE', { mcpToolSchema: { inlinePayload: '{}' } }), false],
])('needs one where the gateway asks for the tools as nobody: %#', (wanted, needed) => {
  expect(needsConsentToList(wanted)).toBe(needed);
});
