import { expect, it } from 'vitest';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { AuthorizationServers, type AuthorizationServersDeps } from './authorization-servers.ts';

/** Servers whose discovery document is this one. */
function serversWith(document: object) {
  const answer = { status: 200, json: async () => document };
  const outbound = { fetch: async () => answer } as unknown as AuthorizationServersDeps['outbound'];
  const servers = new AuthorizationServers({ outbound, clock: new FakeClock() });
  return servers.find({ discoveryUrl: 'https://id.example/.well-known/openid-configuration' }, undefined);
}

const issuer = 'https://id.example';
const token_endpoint = `${issuer}/token`;

it.each(['javascript:alert(1)', 'data:text/html,hello', 'file:///etc/passwd', 'myapp://auth', 'no address'])(
  'a server sends no browser to %s, and the platform asks nothing there',
  async (address) => {
    const found = await serversWith({
      ...{ issuer, token_endpoint, authorization_endpoint: address, revocation_endpoint: address },
    });
    expect(found).toEqual({ issuer, token_endpoint });
    await expect(serversWith({ issuer, token_endpoint: address })).rejects.toMatchObject({ kind: 'nonsense' });
    // The control.
    const authorization_endpoint = `${issuer}/auth`;
    expect(await serversWith({ issuer, token_endpoint, authorization_endpoint })).toEqual({
      ...{ issuer, token_endpoint, authorization_endpoint },
    });
  },
);
