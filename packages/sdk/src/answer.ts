import type { ServerResponse } from 'node:http';

/**
 * Sends a finished result: bytes as they are, a string as JSON or, where the caller accepts `text/plain` and not JSON, as
 * plain text, and everything else as JSON. Throws what `JSON.stringify` throws (cycles, BigInt) before anything is sent.
 */
export function sendResult(response: ServerResponse, result: unknown, accept: string | undefined): void {
  if (result instanceof Uint8Array) send(response, 200, 'application/octet-stream', result);
  else if (typeof result === 'string' && prefersText(accept)) send(response, 200, 'text/plain; charset=utf-8', result);
  else sendJson(response, 200, result);
}

/** Sends `value` as JSON (`undefined` becomes `null`) with that status. */
export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  send(response, status, 'application/json', JSON.stringify(value) ?? 'null');
}

function send(response: ServerResponse, status: number, type: string, body: string | Uint8Array): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

function prefersText(accept: string | undefined): boolean {
  const types = (accept ?? '*/*').split(',').map((part) => (part.split(';')[0] ?? '').trim().toLowerCase());
  return (
    types.includes('text/plain') && !types.some((type) => ['application/json', 'application/*', '*/*'].includes(type))
  );
}
