import { createPublicKey } from 'node:crypto';
import { jwtVerify, SignJWT } from 'jose';
import { createJwtAuthenticator, createOidcDiscovery } from '../../packages/platform/src/kernel/auth/index.ts';
import { startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { createOutbound } from '../../packages/platform/src/kernel/outbound/index.ts';
import { median } from '../support/statistics.ts';

/** Milliseconds of one verification (medians), and the median of the turns' own ratios. */
export interface VerificationTimes {
  platform: number;
  jose: number;
  ratio: number;
}

const TURN = 50;

/**
 * Tokens that nobody has seen before, verified by the platform's authenticator with the keys of their issuer at hand, and the same tokens by
 * `jose` alone with that key, taking turns in one process.
 */
export async function verify(turns: number): Promise<VerificationTimes> {
  const issuer = await startOidcServer();
  const clock = systemClock;
  const outbound = createOutbound({ allowPrivate: ['127.0.0.0/8'], clock });
  try {
    const { key, publicJwk, kid } = issuer.signingKey();
    const publicKey = createPublicKey({ key: { ...publicJwk }, format: 'jwk' });
    const token = (jti: number): Promise<string> =>
      new SignJWT({ jti: String(jti), team: 'red', roles: ['ops', 'dev'] })
        .setProtectedHeader({ alg: 'RS256', kid })
        .setIssuer(issuer.issuer)
        .setSubject('ada')
        .setAudience('urn:agents')
        .setIssuedAt()
        .setExpirationTime('1h')
        .sign(key);
    const authenticator = createJwtAuthenticator({ discovery: createOidcDiscovery({ outbound, clock }), clock });
    const realm = {
      accountId: '111122223333',
      configuration: { discoveryUrl: issuer.discoveryUrl, allowedAudience: ['urn:agents'] },
    };
    const rules = { issuer: issuer.issuer, audience: 'urn:agents', algorithms: ['RS256'], clockTolerance: 60 };
    const [ours, theirs]: [number[], number[]] = [[], []];
    let made = 0;
    // The first turns warm up, and fetch the keys.
    for (let turn = -4; turn < turns; turn += 1) {
      const tokens = await Promise.all(Array.from({ length: TURN }, () => token(made++)));
      const one = await each(tokens, (text) => authenticator.authenticate(text, realm));
      const other = await each(tokens, (text) => jwtVerify(text, publicKey, rules));
      if (turn < 0) continue;
      ours.push(one);
      theirs.push(other);
    }
    const ratios = ours.map((time, turn) => time / (theirs[turn] ?? Number.NaN));
    return { platform: median(ours), jose: median(theirs), ratio: median(ratios) };
  } finally {
    await outbound.close();
    await issuer.close();
  }
}

/** Milliseconds of one, the median of all. */
async function each(tokens: string[], run: (token: string) => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (const token of tokens) {
    const begun = performance.now();
    await run(token);
    times.push(performance.now() - begun);
  }
  return median(times);
}
