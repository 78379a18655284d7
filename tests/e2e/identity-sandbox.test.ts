import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import {
  type CreateAgentRuntimeCommandInput,
  CreateApiKeyCredentialProviderCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleCode } from '../../packages/cli/src/package/bundle-code.ts';
import type { ConsentProvider } from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { pythonPackages } from '../../scripts/test/python-packages.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectConsentProvider, federationOf } from '../support/consent-platform.ts';
import { deployAgent, deployPythonAgent } from '../support/deploy.ts';
import { invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const AGENTS = join(ROOT, 'tests/support/identity-agents');
const KEY = ['sk', 'of-the-sandbox'].join('-');
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const installed = await pythonPackages(ROOT);
let dir: string;
let platform: TestPlatform;
let clients: Clients;
let provider: ConsentProvider;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'identity-sandbox-'));
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  provider = await connectConsentProvider(clients, 'orders', {
    grantType: 'TOKEN_EXCHANGE',
    tokenExchangeGrantTypeConfig: { actorTokenContent: 'NONE' },
  });
  await clients.control.send(new CreateApiKeyCredentialProviderCommand({ name: 'search', apiKey: KEY }));
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
  if (dir) await rm(dir, { recursive: true, force: true });
});

type Settings = Partial<CreateAgentRuntimeCommandInput>;

/** The agent and the SDK from this checkout, in one file. */
async function stageNode(): Promise<(settings: Settings) => Promise<{ arn: string }>> {
  const folder = join(dir, 'node');
  const file = { name: 'identity_agent', language: 'javascript', entrypoint: 'index.mjs' } as const;
  await bundleCode({ folder: AGENTS, file }, folder);
  return (settings) => deployAgent(platform, clients, { folder, ...settings });
}

/** The SDK from this checkout beside what it stands on, without the tools that check it and the services that boto3 is not asked for. */
async function stagePython(): Promise<(settings: Settings) => Promise<{ arn: string }>> {
  const packages = join(dir, 'python');
  const unused = /(__pycache__|(mypy|pytest|pygments)[^/]*|\/botocore\/data\/(?!bedrock-agentcore(\/|$))[^/.]+)$/;
  await cp(installed ?? '', packages, { recursive: true, filter: (path) => !unused.test(path) });
  const sdk = join(ROOT, 'python/agentplatform/src/agentplatform');
  await cp(sdk, join(packages, 'agentplatform'), { recursive: true, filter: (path) => !unused.test(path) });
  return (settings) => deployPythonAgent(platform, clients, { agent: AGENTS, packages, ...settings });
}

interface Told {
  key?: string;
  token?: string;
  headers?: string[];
}

const SDKS = [
  { sdk: 'TypeScript', stage: stageNode, missing: false },
  { sdk: 'Python', stage: stagePython, missing: installed === undefined },
];

for (const { sdk, stage, missing } of SDKS)
  describe.skipIf(missing)(`the ${sdk} SDK in a sandbox, with no configuration`, () => {
    /** Invoked by signed requests. */
    let signed: string;
    /** The same agent, invoked with the tokens of the provider's users. */
    let bearer: string;

    beforeAll(async () => {
      const deploy = await stage();
      ({ arn: signed } = await deploy({}));
      const { discoveryUrl } = provider;
      const customJWTAuthorizer = { discoveryUrl, allowedAudience: ['agents'] };
      ({ arn: bearer } = await deploy({ authorizerConfiguration: { customJWTAuthorizer } }));
    });

    const ask = async (act: string): Promise<Told> =>
      JSON.parse(await invokeText(clients, signed, sessionId(act), { do: act }));

    /** What the agent says for the bearer of that token. */
    async function askAs(token: string, session: string): Promise<Told> {
      const answer = await fetch(`${platform.ready.endpoint}/runtimes/${encodeURIComponent(bearer)}/invocations`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'x-amzn-bedrock-agentcore-runtime-session-id': session,
        },
        body: JSON.stringify({ do: 'exchange' }),
      });
      const text = await answer.text();
      expect(answer.status, text).toBe(200);
      return JSON.parse(text);
    }

    /** Whose token that is, for whom: by the keys that the provider publishes. */
    async function readToken(token = ''): Promise<unknown> {
      const keys = createRemoteJWKSet(new URL(`${provider.issuer}/jwks`));
      const { payload } = await jwtVerify(token, keys, { issuer: provider.issuer });
      return { sub: payload.sub, aud: payload.aud, scope: payload.scope };
    }

    const federation = (user: string) => federationOf(clients, signed, user);

    it('hands over an API key, and to nobody but the agent', async () => {
      expect(await ask('key')).toEqual({ key: KEY });
      expect(platform.log()).not.toContain(KEY);
    });

    it('hands over a token of the agent itself', async () => {
      const { token = '' } = await ask('own');
      expect(await provider.isActive(token)).toBe(true);
      expect(await ask('own')).toEqual({ token });
    });

    it('hands over each user’s own token once he has consented, and asks him once', async () => {
      const [ada, bob] = await Promise.all([federation('ada'), federation('bob')]);
      for (const [user, { url, page, token = '' }] of Object.entries({ ada, bob })) {
        expect(url).toContain(`${platform.ready.endpoint}/identities/oauth2/authorize`);
        expect(page).toContain('has access now');
        expect(await provider.whoIs(token)).toBe(user);
      }
      expect(await federation('ada')).toEqual({ token: ada.token });
    });

    it('exchanges the token of whoever calls, which the agent itself does not see', async () => {
      const [ada, bob] = await Promise.all([provider.userToken('ada'), provider.userToken('bob')]);
      const before = provider.asked.length;
      // Both at once in one sandbox.
      const session = sessionId('both');
      const told = await Promise.all([ada, bob, ada, bob].map((token) => askAs(token, session)));
      expect(await Promise.all(told.map(({ token }) => readToken(token)))).toEqual(
        ['ada', 'bob', 'ada', 'bob'].map((sub) => ({ sub, aud: 'urn:orders', scope: 'read' })),
      );
      for (const { headers = [] } of told) {
        expect(headers).toContain('content-type');
        expect(headers).not.toContain('authorization');
      }
      // What the provider was asked for: one exchange of each user's own token.
      const asked = provider.asked.slice(before);
      expect(asked.map((form) => form.get('grant_type'))).toEqual([EXCHANGE, EXCHANGE]);
      expect(new Set(asked.map((form) => form.get('subject_token')))).toEqual(new Set([ada, bob]));
      // From another sandbox it is the same token, and that of another login is another.
      expect((await askAs(ada, sessionId('other'))).token).toBe(told[0]?.token);
      const later = await provider.userToken('ada', { jti: 'of another login' });
      expect(await readToken((await askAs(later, session)).token)).toMatchObject({ sub: 'ada' });
      expect(provider.asked.slice(before).map((form) => form.get('subject_token'))).toContain(later);
    });

    it('exchanges nothing for a caller who has no such token', async () => {
      await expect(ask('exchange')).rejects.toMatchObject({
        name: 'RuntimeClientError',
        message: expect.stringContaining('without a token of the user'),
      });
    });
  });
