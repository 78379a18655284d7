import { ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeClock } from '../../../../kernel/fake-clock.ts';
import { BackendSigning } from '../../outbound/backend-signing.ts';
import type { Credential } from '../../outbound/credential.ts';
import { TargetCredentials } from '../../outbound/target-credentials.ts';
import { TARGET_KIND } from '../target.ts';
import type { SessionClient } from '../target-kind.ts';
import { startSessionBackend } from './testing/backends.ts';
import { bearer, gateway, type KindLab, mcpTarget, openKindLab } from './testing/kind-lab.ts';
import { sessionServer, type ToolRun } from './testing/stock.ts';

let clock: FakeClock;
let lab: KindLab;
let backend: Awaited<ReturnType<typeof startSessionBackend>>;
let held: PromiseWithResolvers<void> | undefined;

beforeEach(async () => {
  clock = new FakeClock();
  lab = openKindLab({ clock });
  held = undefined;
  const run = async () => {
    await held?.promise;
    return { content: [] };
  };
  backend = await startSessionBackend(() => sessionServer({ run }));
});

afterEach(async () => {
  await lab.close();
  await backend.close();
});

const sessions = (count: number): Promise<void> => vi.waitFor(() => expect(backend.sessions.size).toBe(count), 10_000);

it('a connection that nobody uses is closed after five minutes, and its session ended', async () => {
  await lab.call(mcpTarget(backend.url), 'a');
  await clock.advance(299_000);
  expect(lab.connections.size).toBe(1);
  await clock.advance(2_000);
  expect(lab.connections.size).toBe(0);
  await sessions(0);
});

it('a target that changes gets new connections; calls that are under way end on the old one', async () => {
  const [target, other] = [mcpTarget(backend.url), mcpTarget(backend.url)];
  await lab.call(target, 'a');
  await lab.call(other, 'a');
  held = Promise.withResolvers();
  const before = backend.requests.length;
  const call = lab.call(target, 'a');
  await vi.waitFor(() => expect(backend.requests.length).toBe(before + 1), 10_000);
  await lab.changes.tell(TARGET_KIND, target.arn);
  expect(lab.connections.size).toBe(1);
  expect(backend.sessions.size).toBe(2);
  held.resolve();
  expect(await call).toEqual({ content: [] });
  await sessions(1);
});

it('another revision of a target is another connection', async () => {
  const target = mcpTarget(backend.url);
  await lab.call(target, 'a');
  await lab.call({ ...target, revision: 2 }, 'a');
  expect(lab.connections.size).toBe(2);
});

it('a target has at most a hundred; that which was used longest ago makes room', async () => {
  const target = mcpTarget(backend.url);
  for (let i = 0; i < 105; i++) {
    lab.show(bearer(`token-${i}`));
    await lab.call(target, 'a');
  }
  expect(lab.connections.size).toBe(100);
  await sessions(100);
});

/** Signs at the backend, with keys that are others at each renewal. */
function signingAt(origin: string): BackendSigning {
  let issued = 0;
  const issue = (seconds: number) => () => ({
    ...{ accessKeyId: `ASIA${++issued}`, secretAccessKey: `secret-${issued}`, sessionToken: `session-${issued}` },
    ...{ arn: 'arn:aws:sts::1:assumed-role/lab/gateway-lab', assumedRoleId: 'AROA:gateway-lab' },
    expiresAt: clock.now() + seconds * 1_000,
  });
  return new BackendSigning({
    ...{ roles: { issueRoleCredentials: issue(900), issueForwarded: issue(300) }, clock, region: 'us-east-1' },
    ...{ ownAddresses: () => [origin], roleCredentials: undefined },
  });
}

it('who renews the keys that he signs with keeps his session of the backend; another has one of his own', async () => {
  const signing = signingAt(new URL(backend.url).origin);
  const asRole = () => signing.asRole(gateway, { service: 'bedrock-agentcore' });
  const asCaller = async (name: string) =>
    signing.asCaller(
      { kind: 'iam', accountId: '1', arn: `arn:aws:iam::1:user/${name}`, accessKeyId: name, tags: {} },
      { service: 'bedrock-agentcore' },
    );
  const target = mcpTarget(backend.url);
  const who = [asRole, () => asCaller('ann'), () => asCaller('bob')];
  for (const one of [...who, ...who]) {
    lab.show(await one());
    await lab.call(target, 'a');
  }
  expect(backend.sessions.size).toBe(3);
  const before = backend.requests.length;
  for (let i = 0; i < 10; i++) {
    // None is idle for so long that it is closed.
    await clock.advance(240_000);
    for (const one of who) {
      lab.show(await one());
      await lab.call(target, 'a');
    }
  }
  const tokens = new Set(backend.requests.slice(before).map(({ headers }) => headers['x-amz-security-token']));
  expect(tokens.size).toBeGreaterThan(20);
  expect(backend.requests.slice(before).every(({ headers }) => headers['mcp-session-id'] !== undefined)).toBe(true);
  expect(lab.connections.size).toBe(3);
  expect(backend.sessions.size).toBe(3);
});

describe('a target with a token of OAuth', () => {
  const tokens = new Map<string, string>();
  const providerArn = 'arn:aws:bedrock-agentcore:us-east-1:1:token-vault/default/oauth2credentialprovider/people';

  /** What that user of the gateway is, by what Identity has of him. */
  function credentialOf(user: string, grantType: 'AUTHORIZATION_CODE' | 'CLIENT_CREDENTIALS'): Promise<Credential> {
    const credentials = new TargetCredentials({
      identity: {
        credentials: {
          kindOf: async () => 'oauth2' as const,
          apiKey: () => Promise.reject(new Error('no key is asked for')),
          oauth2Token: async () => ({ accessToken: tokens.get(user) ?? 'nobody' }),
        },
      },
      roleMay: () => true,
      signing: signingAt(backend.url),
    });
    const principal = {
      ...{ kind: 'oauth' as const, accountId: '1', acceptedBy: gateway.arn, issuer: 'https://people.example' },
      ...{ vouchedBy: 'https://people.example', discoveryUrl: undefined, subject: user, claims: {} },
      ...{ token: `of ${user}`, digest: user },
    };
    const definition = {
      ...mcpTarget(backend.url).live,
      credentialProviderConfigurations: [
        {
          credentialProviderType: 'OAUTH' as const,
          credentialProvider: { oauthCredentialProvider: { providerArn, scopes: ['read'], grantType } },
        },
      ],
    };
    const signal = new AbortController().signal;
    return credentials.of({ name: 'target' }, definition, gateway, { principal, signal });
  }

  it('is shared by no two users, nor by one who consents again with another account; one and the same keeps his', async () => {
    const target = mcpTarget(backend.url);
    const asks = async (user: string, token: string): Promise<void> => {
      tokens.set(user, token);
      lab.show(await credentialOf(user, 'AUTHORIZATION_CODE'));
      await lab.call(target, 'a');
    };
    // A backend may well call two users by one token; whose it is decides.
    await asks('ann', 'same');
    await asks('bob', 'same');
    expect(backend.sessions.size).toBe(2);
    await asks('ann', 'same');
    expect(backend.sessions.size).toBe(2);
    await asks('ann', 'another account');
    expect(backend.sessions.size).toBe(3);
    await asks('ann', 'another account');
    await asks('bob', 'same');
    expect(backend.sessions.size).toBe(3);
  });

  it('is shared by all where the token is the gateway’s own', async () => {
    const target = mcpTarget(backend.url);
    for (const user of ['ann', 'bob']) {
      tokens.set(user, 'machine');
      lab.show(await credentialOf(user, 'CLIENT_CREDENTIALS'));
      await lab.call(target, 'a');
    }
    expect(backend.sessions.size).toBe(1);
  });
});

it('a session of a client whose requests bring ever other headers has four; the others keep theirs', async () => {
  const target = mcpTarget(backend.url, { headers: ['traceparent'] });
  const client = (id: string): SessionClient => ({
    ...{ id, capabilities: {}, log: () => undefined, ask: () => Promise.reject(new Error('nobody asks')) },
  });
  await lab.call(target, 'a', {}, { session: client('other'), headers: { traceparent: 'x' } });
  const [others] = backend.sessions.keys();
  for (let i = 0; i < 10; i++)
    await lab.call(target, 'a', {}, { session: client('one'), headers: { traceparent: `t${i}` } });
  expect(lab.connections.size).toBe(5);
  await sessions(5);
  expect([...backend.sessions.keys()]).toContain(others);
});

it('callers at the same moment share one handshake', async () => {
  const target = mcpTarget(backend.url);
  await Promise.all(Array.from({ length: 20 }, () => lab.call(target, 'a')));
  expect(backend.sessions.size).toBe(1);
});

it('all are closed at the end, and their sessions ended', async () => {
  await lab.call(mcpTarget(backend.url), 'a');
  await lab.call(mcpTarget(backend.url), 'a');
  expect(backend.sessions.size).toBe(2);
  await lab.connections.close();
  expect(backend.sessions.size).toBe(0);
  await expect(lab.call(mcpTarget(backend.url), 'a')).rejects.toThrow();
});

it('each session of a client has one of its own, as long as it lasts; a question reaches the client whose call it is', async () => {
  await backend.close();
  const form = { mode: 'form', message: 'Who?', requestedSchema: { type: 'object', properties: {} } };
  const run = async ({ ask }: ToolRun): Promise<object> => {
    const answer = await ask?.({ method: 'elicitation/create', params: form }, ElicitResultSchema);
    return { content: [{ type: 'text', text: JSON.stringify(answer) }] };
  };
  backend = await startSessionBackend(() => sessionServer({ run }));
  const target = mcpTarget(backend.url);
  const session = (id: string, who: string): SessionClient => ({
    ...{ id, capabilities: { elicitation: {} }, log: () => undefined },
    ask: async () => ({ action: 'accept', content: { who } }),
  });
  const [ada, bob] = [session('a', 'Ada'), session('b', 'Bob')];
  const asked = async (client: SessionClient): Promise<string> =>
    JSON.stringify(await lab.call(target, 'a', {}, { session: client }));
  expect(await Promise.all([asked(ada), asked(bob), asked(ada)])).toEqual(
    ['Ada', 'Bob', 'Ada'].map((who) => expect.stringContaining(who)),
  );
  expect(backend.sessions.size).toBe(2);
  await clock.advance(1_000_000);
  expect(lab.connections.size).toBe(2);
  lab.connections.endSession('a');
  await sessions(1);
  expect(await asked(bob)).toContain('Bob');
});
