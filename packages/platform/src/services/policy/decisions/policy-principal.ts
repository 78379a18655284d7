import type { Claims, Principal } from '../../../kernel/auth/index.ts';

/** Who asks, as policies see him. */
export interface PolicyPrincipal {
  type: 'OAuthUser' | 'IamEntity';
  id: string;
  /** Claims of a token, each as a text; a signer has none. */
  tags: Record<string, string>;
}

/** Whoever began a session: the ARN of a signer, or the subject of a token with its claims. */
export interface FirstCaller {
  id: string;
  /** Absent of a signer. */
  claims?: Claims | undefined;
}

/** Claims beyond these are not seen: a token has no more in earnest. */
const MOST_TAGS = 200;

/**
 * Who asks, as the original has it: the subject of a token with its claims as tags, or the ARN of a user or of a role session. A claim that is no
 * text is written as JSON, a list so too: `["a","b"]`. Undefined for whoever has proven nothing.
 */
export function policyPrincipal(principal: Principal): PolicyPrincipal | undefined {
  if (principal.kind === 'anonymous') return undefined;
  if (principal.kind === 'iam') return principalOf({ id: principal.arn });
  return principalOf({ id: principal.subject, claims: principal.claims });
}

/** The same of whoever began a session that is carried on. */
export function principalOf({ id, claims }: FirstCaller): PolicyPrincipal {
  if (!claims) return { type: 'IamEntity', id, tags: {} };
  const tags = Object.entries(claims).slice(0, MOST_TAGS).flatMap(tagOf);
  return { type: 'OAuthUser', id, tags: Object.fromEntries(tags) };
}

function tagOf([name, value]: [string, unknown]): [string, string][] {
  if (typeof value === 'string') return [[name, value]];
  const text = value === null || value === undefined ? undefined : JSON.stringify(value);
  return text === undefined ? [] : [[name, text]];
}
