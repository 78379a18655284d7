import type { Principal } from '../../../kernel/auth/index.ts';

/** Who asks, as policies see him. */
export interface PolicyPrincipal {
  type: 'OAuthUser' | 'IamEntity';
  id: string;
  /** Claims of a token, each as a text; a signer has none. */
  tags: Record<string, string>;
}

/** Claims beyond these are not seen: a token has no more in earnest. */
const MOST_TAGS = 200;

/**
 * Who asks, as the original has it: the subject of a token with its claims as tags, or the ARN of a user or of a role session. A claim that is no
 * text is written as JSON, a list so too: `["a","b"]`. Undefined for whoever has proven nothing.
 */
export function policyPrincipal(principal: Principal): PolicyPrincipal | undefined {
  if (principal.kind === 'anonymous') return undefined;
  if (principal.kind === 'iam') return { type: 'IamEntity', id: principal.arn, tags: {} };
  const claims = Object.entries(principal.claims).slice(0, MOST_TAGS);
  return { type: 'OAuthUser', id: principal.subject, tags: Object.fromEntries(claims.flatMap(tagOf)) };
}

function tagOf([name, value]: [string, unknown]): [string, string][] {
  if (typeof value === 'string') return [[name, value]];
  const text = value === null || value === undefined ? undefined : JSON.stringify(value);
  return text === undefined ? [] : [[name, text]];
}
