import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';

/** An authorization server (RFC 8414) behind a private certificate. It gives a token to every caller. */
export interface PrivateProvider {
  discoveryUrl: string;
  /** Of its subject `ann`, for the audience `agents`. */
  token: string;
  close(): void;
}

export async function startPrivateProvider(credential: { key: string; cert: string }): Promise<PrivateProvider> {
  const keys = await generateKeyPair('RS256');
  const jwk = { ...(await exportJWK(keys.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' };
  let issuer = '';
  const server = createServer(credential, (req, res) => {
    res.setHeader('content-type', 'application/json');
    if (req.url === '/.well-known/oauth-authorization-server')
      res.end(JSON.stringify({ issuer, jwks_uri: `${issuer}/keys`, token_endpoint: `${issuer}/token` }));
    else if (req.url === '/token')
      res.end(JSON.stringify({ access_token: 'of-the-private', token_type: 'Bearer', expires_in: 600 }));
    else res.end(JSON.stringify({ keys: [jwk] }));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const claims = new SignJWT({}).setProtectedHeader({ alg: 'RS256', kid: 'one' }).setIssuer(issuer);
  const named = claims.setAudience('agents').setSubject('ann').setIssuedAt().setExpirationTime('1h');
  return {
    discoveryUrl: `${issuer}/.well-known/oauth-authorization-server`,
    token: await named.sign(keys.privateKey),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
