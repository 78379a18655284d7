import { join } from 'node:path';
import { CreateWorkloadIdentityCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createJwtAuthenticator } from '../../packages/platform/src/kernel/auth/jwt.ts';
import { createOidcDiscovery } from '../../packages/platform/src/kernel/auth/oidc-discovery.ts';
import { type OidcServer, startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { createOutbound } from '../../packages/platform/src/kernel/outbound/index.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';
import {
  attempt,
  type Behaviour,
  ENDLESS,
  fastClock,
  MIB,
  openHostileServer,
  SENSELESS,
  SILENT,
  textOf,
} from './hostile-server.ts';

// Providers of identity are named by users: by the authors of runtimes, and by whoever shows a token.

let provider: OidcServer;
beforeAll(async () => {
  provider = await startOidcServer();
});
afterAll(() => provider.close());

describe('a provider', () => {
  const clock = fastClock(2);
  const outbound = createOutbound({ allowPrivate: ['127.0.0.0/8'], clock });
  const shown = async (origin: string, path: string): Promise<unknown> => {
    const authenticator = createJwtAuthenticator({ discovery: createOidcDiscovery({ outbound, clock }), clock });
    const token = await provider.token();
    return authenticator.authenticate(token, { accountId: '1', configuration: { discoveryUrl: `${origin}${path}` } });
  };
  /** Names keys beside itself in an innocent document, and does what it does when it is asked for these. */
  const withDocument =
    (behave: Behaviour): Behaviour =>
    (socket, head) => {
      if (!head.startsWith('GET /document ')) return behave(socket, head);
      const host = /^host: (.*)\r$/im.exec(head)?.[1];
      const document = JSON.stringify({ issuer: issuerOf(token), jwks_uri: `http://${host}/keys` });
      socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${document.length}\r\n\r\n${document}`);
    };
  let token: string;
  beforeAll(async () => {
    token = await provider.token();
  });

  it.each([
    ['document', (behave: Behaviour) => behave, 1],
    ['keys', withDocument, 2],
  ])(
    'is given up in bounded time and bytes, whatever its %s are, and users are told nothing of it',
    async (_what, wrap, asked) => {
      const all = { ...SILENT, ...ENDLESS, ...SENSELESS };
      const behaviours = Object.fromEntries(Object.entries(all).map(([name, behave]) => [name, wrap(behave)]));
      const came = await attempt(behaviours, (origin) => shown(origin, '/document'));
      for (const { name, error, requests, sent } of came) {
        expect(error, name).toMatchObject({ code: 'ServiceUnavailableException' });
        // Users' addresses are followed, a few times.
        expect(requests, name).toBe(name === 'a redirect to itself' ? asked + 3 : asked);
        if (name !== 'an endless extension of a chunk') expect(sent, name).toBeLessThan(16 * MIB);
        const said = textOf(error, 0);
        expect(said, name).toBe("The token cannot be verified, for its issuer's keys cannot be fetched.");
      }
    },
    90_000,
  );

  it('leads nowhere inside, by a redirect or by what its document says', async () => {
    const closed = createOutbound({ clock, resolve: async () => [{ address: '127.0.0.1', family: 4 }] });
    const inside = await openHostileServer(SENSELESS['an empty object'] ?? (() => undefined));
    // The control: what is open to it is asked.
    await expect(shown(inside.origin, '/')).rejects.toThrow();
    expect(inside.heads.splice(0)).toHaveLength(1);
    const discovery = createOidcDiscovery({ outbound: closed, clock });
    for (const host of [inside.origin, inside.origin.replace('127.0.0.1', 'name.test')])
      await expect(discovery.issuer(`${host}/`)).rejects.toThrow(/does not call|the platform calls/);
    expect(inside.heads).toEqual([]);
    await inside.close();
    await closed.close();
  });
});

describe('a platform', () => {
  const ATTACKS = 600;
  let platform: TestPlatform;
  let clients: Clients;

  beforeAll(async () => {
    platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
    clients = clientsOf(platform);
  });
  afterAll(async () => {
    clients.close();
    await platform.dispose();
  });

  it('that asks hundreds of silent issuers for a caller still verifies the tokens of others', async () => {
    const { arn } = await deployAgent(platform, clients, {
      folder: join(import.meta.dirname, '../support/probe-agent'),
      authorizerConfiguration: {
        customJWTAuthorizer: { discoveryUrl: provider.discoveryUrl, allowedAudience: ['urn:agents'] },
      },
    });
    await clients.control.send(new CreateWorkloadIdentityCommand({ name: 'attacker' }));
    const silent = await openHostileServer(() => undefined);
    let shown = 0;
    let refused = 0;
    let over = false;
    // Each names a new issuer as soon as the last was given up, for one that did not answer is not asked again at once.
    const attacks = Array.from({ length: ATTACKS }, async () => {
      while (!over) {
        const issuer = `${silent.origin}/${shown++}`;
        const userToken = unsecured({ iss: issuer, sub: 'x' });
        const content = { workloadName: 'attacker', userToken };
        const path = '/identities/GetWorkloadAccessTokenForJWT';
        const asked = performance.now();
        expect((await signedFetch(platform, { method: 'POST', path, content })).status).toBe(503);
        if (performance.now() - asked < 4_000) refused++;
      }
    });
    try {
      // The control: there is no room for more of its kind, so that some are refused at once.
      await expect.poll(() => refused > 0 && silent.connections() > 0, { timeout: 60_000 }).toBe(true);
      const url = `${platform.ready.endpoint}/runtimes/${encodeURIComponent(arn)}/invocations`;
      const answer = await fetch(url, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${await provider.token()}`,
          'content-type': 'application/json',
          'x-amzn-bedrock-agentcore-runtime-session-id': sessionId('oauth'),
        },
        body: JSON.stringify({ do: 'headers' }),
      });
      expect(answer.status).toBe(200);
    } finally {
      over = true;
      await Promise.all(attacks);
    }
    await expect.poll(silent.connections, { timeout: 30_000 }).toBe(0);
    await silent.close();
  }, 180_000);
});

/** A token of the algorithm `none`, with a signature that is none. */
function unsecured(claims: object): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'none' })}.${part(claims)}.c2lnbmVk`;
}

function issuerOf(token: string): unknown {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).iss;
}
