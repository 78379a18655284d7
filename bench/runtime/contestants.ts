import type { SignedRequest } from '../support/signed-requests.ts';
import type { BenchPlatform, LiveSession } from './bench-platform.ts';

/** One way to the same agent in the same sandbox. */
export interface Contestant {
  name: 'direct' | 'nginx' | 'platform';
  host: string;
  port: number;
}

export function contestantsOf(bench: BenchPlatform, session: LiveSession, nginxPort: number): Contestant[] {
  return [
    { name: 'direct', ...session.address },
    { name: 'nginx', host: '127.0.0.1', port: nginxPort },
    { name: 'platform', host: bench.endpoint.hostname, port: Number(bench.endpoint.port) },
  ];
}

/**
 * The request that all contestants get: 1 KB, signed. Signed for several seconds past, so that no part may live from seeing one
 * signature again and again.
 */
export function signedKilobytes(bench: BenchPlatform, sessionId: string): Promise<SignedRequest[]> {
  const now = Date.now();
  const body = 'y'.repeat(1024);
  return Promise.all(
    Array.from({ length: 16 }, (_, second) => bench.invocation(sessionId, body, new Date(now - second * 1000))),
  );
}
