import { errors } from '@agentplatform/contract';
import { isSignable } from '../../kernel/auth/index.ts';
import type { RequestContext } from '../../kernel/service.ts';

/**
 * An agent believes the headers that its allowlist names, so a signed call must have signed them, except those that no client signs.
 * Throws InvalidSignatureException that names the header.
 */
export function requireSigned(
  { headers, signedHeaders }: Pick<RequestContext, 'headers' | 'signedHeaders'>,
  allowlist: readonly string[],
): void {
  if (signedHeaders === undefined) return;
  const unsigned = allowlist.find(
    (name) => headers[name] !== undefined && !signedHeaders.has(name) && isSignable(name),
  );
  if (unsigned === undefined) return;
  throw errors.invalidSignature(`The header "${unsigned}" must be signed, because the agent gets it.`, {
    remedy: 'Add the header before the request is signed.',
  });
}
