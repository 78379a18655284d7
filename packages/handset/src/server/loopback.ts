import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv6 } from 'node:net';

const LOCAL_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Whether an address of this machine, in whatever notation, can be reached from this machine alone. */
export function isLoopback(host: string): boolean {
  const version = isIP(host);
  return host === 'localhost' || (version !== 0 && loopback.check(host, version === 6 ? 'ipv6' : 'ipv4'));
}

/** The address to open in a browser: that of this machine if the server listens on all of its addresses. */
export function serverUrl(host: string, port: number): string {
  const isAll = /^(0\.0\.0\.0|[0:]*)$/.test(host);
  return `http://${isAll ? 'localhost' : bracketed(host)}:${port}`;
}

/**
 * Whether a request names this server by a name of its own. A page of another site that lets its own name point to
 * 127.0.0.1 would otherwise read what is served here. `address` is the one that the server listens on.
 */
export function namesThisServer(request: IncomingMessage, host: string, address: string): boolean {
  if (!isLoopback(address)) return true;
  const name = (request.headers.host ?? '').replace(/:\d+$/, '').toLowerCase();
  return [...LOCAL_NAMES, bracketed(host).toLowerCase(), bracketed(address)].includes(name);
}

function bracketed(host: string): string {
  return isIPv6(host) ? `[${host}]` : host;
}
