import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, type GenerateKeyPairResult, generateKeyPair, type JWK } from 'jose';
import Provider from 'oidc-provider';

/** A real OpenID provider on a port of its own, with one confidential client. */
export interface OidcServer {
  issuer: string;
  discoveryUrl: string;
  /** Requests by path since the start. */
  seen: string[];
  /** A client-credentials access token as JWT, for a resource (its audience) and scopes. */
  token(options?: { resource?: string; scope?: string }): Promise<string>;
  /** New keys replace the old ones at once. */
  rotate(alg?: string): Promise<void>;
  /** Private half of the current key, to forge with. */
  signingKey(): { key: GenerateKeyPairResult['privateKey']; publicJwk: JWK; kid: string };
  close(): Promise<void>;
}

export async function startOidcServer(alg = 'RS256'): Promise<OidcServer> {
  let listener: RequestListener = (_, res) => res.writeHead(503).end();
  const seen: string[] = [];
  const server = createServer((req, res) => {
    seen.push((req.url ?? '').split('?')[0] ?? '');
    listener(req, res);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let keys: GenerateKeyPairResult;
  let kid = '';
  let publicJwk: JWK = {};
  let rotations = 0;

  async function rotate(nextAlg = alg): Promise<void> {
    keys = await generateKeyPair(nextAlg, { extractable: true });
    kid = `key-${++rotations}`;
    publicJwk = { ...(await exportJWK(keys.publicKey)), kid, alg: nextAlg };
    const provider = new Provider(issuer, {
      jwks: { keys: [{ ...(await exportJWK(keys.privateKey)), kid, alg: nextAlg, use: 'sig' }] },
      clients: [
        {
          client_id: 'agent',
          client_secret: 'agent-secret',
          grant_types: ['client_credentials'],
          redirect_uris: [],
          response_types: [],
          ...(nextAlg === 'RS256' ? {} : { id_token_signed_response_alg: nextAlg }),
        },
      ],
      // The provider's own choice is shorter.
      enabledJWA: { idTokenSigningAlgValues: ['RS256', nextAlg] },
      scopes: ['read', 'write'],
      extraTokenClaims: () => ({ team: 'red', roles: ['ops', 'dev'] }),
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: (_: unknown, resource: string) => ({
            audience: resource,
            scope: 'read write',
            accessTokenFormat: 'jwt',
            accessTokenTTL: 600,
            jwt: { sign: { alg: nextAlg } },
          }),
        },
      },
    });
    listener = provider.callback();
  }
  await rotate();

  return {
    issuer,
    discoveryUrl: `${issuer}/.well-known/openid-configuration`,
    seen,
    rotate,
    signingKey: () => ({ key: keys.privateKey, publicJwk, kid }),
    async token({ resource = 'urn:agents', scope = 'read' } = {}) {
      const answer = await fetch(`${issuer}/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa('agent:agent-secret')}` },
        body: new URLSearchParams({ grant_type: 'client_credentials', resource, scope }),
      });
      const body = (await answer.json()) as { access_token?: string };
      if (!body.access_token) throw new Error(`no token: ${JSON.stringify(body)}`);
      return body.access_token;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
