import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Ready } from './announce.ts';
import type { Clock } from './kernel/clock.ts';
import { every } from './kernel/every.ts';
import type { HttpServer } from './kernel/http/index.ts';
import { openLocalAuthority } from './kernel/tls/index.ts';

export interface OpenTlsOptions {
  data: string;
  region: string;
  host: string;
  port: number;
  clock: Clock;
  log: Logger;
}

const DAY_MS = 86_400_000;

/**
 * Serves TLS on the host names of the original besides (COMPATIBILITY 0), for clients that take no other address. Resolves with what
 * clients must know, and what stops the renewal of its certificate; the listener ends with the server.
 */
export async function openTls(
  server: Pick<HttpServer, 'listenSecurely'>,
  { data, region, host, port, clock, log }: OpenTlsOptions,
): Promise<{ tls: NonNullable<Ready['tls']>; close(): Promise<void> }> {
  const hosts = [`bedrock-agentcore.${region}.amazonaws.com`, `bedrock-agentcore-control.${region}.amazonaws.com`];
  const authority = await openLocalAuthority(join(data, 'tls'), hosts, clock.now());
  const listener = await server.listenSecurely(host, port, authority.issue(clock.now()));
  const close = every(
    clock,
    DAY_MS,
    'renew the certificate',
    async () => listener.renew(authority.issue(clock.now())),
    log,
  );
  const { caFile, bundleFile } = authority;
  return { tls: { address: host, port: listener.port, hosts, caFile, bundleFile }, close };
}
