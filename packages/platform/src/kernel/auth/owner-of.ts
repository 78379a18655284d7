import type { Principal } from './principal.ts';

/**
 * Whose a thing is that this principal has started, as a text to be kept and compared. What runs in a sandbox owns as its role in that very
 * sandbox: another sandbox of the same role, also another session of the same agent, is another owner. Outside of sandboxes sessions of one
 * role are one owner, since whoever assumes the role names the session; a user owns by name, whichever key is used.
 */
export function ownerOf(principal: Principal): string {
  if (principal.kind === 'oauth') return `${principal.vouchedBy}#${principal.subject}`;
  if (principal.kind === 'anonymous') return `anonymous ${principal.acceptedBy} ${principal.address}`;
  const who = assumedRoleArn(principal.arn);
  return principal.sandboxId === undefined ? who : `${who} ${principal.sandboxId}`;
}

/** The role of a role session's ARN; other ARNs as they are. */
export function assumedRoleArn(arn: string): string {
  return arn.replace(/^arn:aws:sts::(\d+):assumed-role\/([^/]+)\/.*$/, 'arn:aws:iam::$1:role/$2');
}
