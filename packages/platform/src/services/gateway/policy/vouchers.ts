import { createHash } from 'node:crypto';
import { errors } from '@agentplatform/contract';
import { checkRules, type Principal } from '../../../kernel/auth/index.ts';
import type { CarriedSession } from '../../policy/index.ts';
import type { Gateway } from '../gateways/gateway.ts';

/**
 * Who vouches for a caller of a gateway, as a text to be kept and compared: of a signer his account, of a token the document that names its keys, with the
 * authority of the document's place where the gateway has one of its own. Whoever chooses a document can have it name any issuer, so an issuer's name is not it.
 */
export function voucherOf(gateway: Gateway, principal: Pick<Principal, 'kind' | 'accountId'>): string {
  return principal.kind === 'iam' ? principal.accountId : (issuerAt(gateway) ?? '');
}

/** Throws AccessDeniedException for a session that was begun by somebody whom the authorizer of this gateway would not let in. */
export function refuseUnknown(
  gateway: Gateway,
  { vouchedBy, first }: Pick<CarriedSession, 'vouchedBy' | 'first'>,
): void {
  const { id, accountId, definition } = gateway;
  const trusted = first.claims ? issuerAt(gateway) : definition.authorizerType === 'AWS_IAM' ? accountId : undefined;
  const rules = definition.authorizerConfiguration?.customJWTAuthorizer;
  const failures = first.claims && rules ? checkRules(first.claims, rules) : [];
  if (trusted === vouchedBy && failures.length === 0) return;
  const why =
    trusted === vouchedBy ? failures.map(({ message }) => message).join(' ') : 'Somebody else vouches for him.';
  throw errors.accessDenied(`The gateway ${id} does not know who began the policy session: ${why}`, {
    remedy:
      'Give this gateway an authorizer that lets the first caller in, or ask it without the workload access token.',
  });
}

function issuerAt({ definition, certificateAuthority }: Gateway): string | undefined {
  const discoveryUrl = definition.authorizerConfiguration?.customJWTAuthorizer?.discoveryUrl;
  if (discoveryUrl === undefined || certificateAuthority === undefined) return discoveryUrl;
  return `${discoveryUrl} ${createHash('sha256').update(certificateAuthority).digest('base64url')}`;
}
