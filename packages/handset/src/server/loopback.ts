import type { IncomingMessage } from 'node:http';

const LOCAL_NAMES = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Whether an address of this machine can be reached from this machine alone. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/**
 * Whether a request names this server by a name of its own. A page of another site that lets its own name point to
 * 127.0.0.1 would otherwise read what is served here.
 */
export function namesThisServer(request: IncomingMessage, host: string): boolean {
  if (!isLoopback(host)) return true;
  const name = (request.headers.host ?? '').replace(/:\d+$/, '').toLowerCase();
  return LOCAL_NAMES.has(name);
}
