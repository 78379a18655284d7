import { Pool } from 'undici';
import type { Sandbox } from '../sandbox/index.ts';

/** HTTP to a port of a sandbox. Sockets are opened as they are needed. */
export function connectTo(sandbox: Sandbox, port: number): Pool {
  const address = sandbox.address(port);
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  return new Pool(`http://${host}:${address.port}`, {
    // Time limits of a request are the invocation's own; a lost sandbox is noticed by `exited` and the ping.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: 10_000 },
    pipelining: 1,
  });
}

/** Ends every request and socket of it. Never rejects. */
export function disconnect(connection: Pool | undefined): void {
  connection?.destroy().catch(() => undefined);
}
