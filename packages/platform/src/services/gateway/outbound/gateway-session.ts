import type { Iam } from '../../../kernel/auth/index.ts';
import type { Gateway } from '../gateways/gateway.ts';

/** The shortest that there is. */
const SECONDS = 900;
const LONGEST_NAME = 64;

/** New credentials of a gateway's role, for a target that was given these memories. Throws AccessDeniedException for a role that does not trust the platform. */
export function gatewaySession(
  { arn: sourceArn, id, definition: { roleArn } }: Gateway,
  roles: Pick<Iam, 'issueRoleCredentials'>,
  given: readonly string[] = [],
): ReturnType<Iam['issueRoleCredentials']> {
  const sessionName = `gateway-${id}`.slice(0, LONGEST_NAME);
  return roles.issueRoleCredentials({ roleArn, sessionName, sourceArn, given, ttlSeconds: SECONDS });
}
