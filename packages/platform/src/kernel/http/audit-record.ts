import type { Principal } from '../auth/index.ts';

/** One answered request, or one decision, as the audit trail keeps it; no header, body or secret of it. */
export interface AuditRecord {
  at: number;
  requestId: string;
  /** Of the contract, or the action of a stream or of a door beside the contract's operations. */
  operation: string;
  accountId: string | undefined;
  principal: string | undefined;
  resource: string | undefined;
  status: number;
  errorCode: string | undefined;
  sourceIp: string | undefined;
  userAgent: string | undefined;
  /** The session that the request names, and the user whom its caller makes it for. */
  sessionId?: string | undefined;
  onBehalfOf?: string | undefined;
  /** So many refusals that are alike, from `at` until then; absent for one. */
  count?: number;
  until?: number;
}

/** What is known of the request, texts of callers as they wrote them; `at` in milliseconds since the epoch. */
export interface Audited extends Omit<AuditRecord, 'accountId' | 'principal'> {
  principal: Principal | undefined;
}

/** The record of it, every text of it bounded and fit to be stored. */
export function auditRecord(audited: Audited): AuditRecord {
  const { operation, principal, resource, userAgent, sessionId, onBehalfOf, ...rest } = audited;
  return {
    ...rest,
    ...(sessionId && { sessionId: auditText(sessionId, 256) }),
    ...(onBehalfOf && { onBehalfOf: auditText(onBehalfOf, 1024) }),
    operation: auditText(operation),
    accountId: principal?.accountId,
    principal: principal && auditText(nameOf(principal)),
    resource: resource && auditText(resource),
    userAgent: userAgent && auditText(userAgent, 256),
  };
}

/** How the audit trail and refusals name a caller: a user by who vouches for him, since a tenant's document may name any issuer. */
export function nameOf(principal: Principal): string {
  if (principal.kind === 'anonymous') return 'anonymous';
  return principal.kind === 'iam' ? principal.arn : `${principal.vouchedBy}#${principal.subject}`;
}

/** What a caller wrote, fit to be kept: nobody fills the trail with it, nor keeps a record out by a character that cannot be stored. */
function auditText(text: string, maxChars = 2048): string {
  return text.slice(0, maxChars).replaceAll('\0', '\ufffd').toWellFormed();
}
