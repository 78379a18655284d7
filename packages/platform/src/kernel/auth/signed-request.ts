import type { IncomingMessage } from 'node:http';
import { gateBody } from './body-gate.ts';
import type { IamPrincipal } from './principal.ts';
import type { Authenticator } from './sigv4.ts';
import type { Spool } from './spool.ts';

export interface SignedRequestDeps {
  authenticator: Authenticator;
  spool: Spool;
}

export interface SignedBody {
  principal: IamPrincipal;
  body: Buffer;
}

/** Authenticates a request of the platform's own routes together with its whole body. Rejects with `ServiceError`. */
export async function readSigned(
  req: IncomingMessage,
  service: string,
  maxBytes: number,
  deps: SignedRequestDeps,
): Promise<SignedBody> {
  const { principal, body } = await deps.authenticator.authenticate({
    method: req.method ?? '',
    rawUrl: req.url ?? '/',
    rawHeaders: req.rawHeaders,
    service,
  });
  const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
  const contentLength = coding !== undefined ? undefined : Number(length ?? 0);
  const gated = await gateBody(req, body, { contentLength, maxBytes, spool: deps.spool });
  if (gated.kind === 'buffer') return { principal, body: gated.data };
  const parts: Buffer[] = [];
  for await (const part of gated.stream as AsyncIterable<Buffer>) parts.push(part);
  return { principal, body: Buffer.concat(parts) };
}
