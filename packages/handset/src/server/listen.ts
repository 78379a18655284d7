import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ProblemError } from '../problem.ts';
import { findPortOwner } from './port-owner.ts';

const NEXT_PORTS = 20;

/** Where a server listens: `localhost` is 127.0.0.1, and a name is what it stands for. */
export interface Bound {
  readonly address: string;
  readonly port: number;
}

/**
 * Listen on `host` and say where (port 0 asks for any). Throws `port-in-use`, naming the owner and the next free port, and
 * `usage` for an address that is not of this machine.
 */
export async function listen(server: Server, host: string, port: number): Promise<Bound> {
  try {
    return await tryListen(server, host === 'localhost' ? '127.0.0.1' : host, port);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : '';
    if (code === 'EACCES') {
      throw new ProblemError('port-in-use', {
        message: `Port ${port} may not be opened by you.`,
        remedy: 'Choose a port above 1023 with --port.',
      });
    }
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN' || code === 'EINVAL') {
      throw new ProblemError('usage', {
        message: `${host} is no address of this machine.`,
        remedy: 'Leave out --host, or give an address that `ip address` shows; 0.0.0.0 means all of them.',
      });
    }
    if (code !== 'EADDRINUSE') throw error;
    const owner = await findPortOwner(port);
    const next = await nextFreePort(host, port);
    throw new ProblemError('port-in-use', {
      message: `Port ${port} is in use${owner ? ` by ${owner}` : ''}.`,
      remedy: next ? `Stop it, or use the next free port: --port ${next}` : undefined,
    });
  }
}

function tryListen(server: Server, host: string, port: number): Promise<Bound> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      resolve(server.address() as AddressInfo);
    });
  });
}

/** The first port after `port` that can be opened on `host`, or undefined if twenty are taken. */
export async function nextFreePort(host: string, port: number): Promise<number | undefined> {
  const { createServer } = await import('node:net');
  for (let candidate = port + 1; candidate <= Math.min(port + NEXT_PORTS, 65_535); candidate += 1) {
    const free = await new Promise<boolean>((resolve) => {
      const probe = createServer();
      probe.once('error', () => resolve(false));
      probe.listen({ host, port: candidate }, () => probe.close(() => resolve(true)));
    });
    if (free) return candidate;
  }
  return undefined;
}
