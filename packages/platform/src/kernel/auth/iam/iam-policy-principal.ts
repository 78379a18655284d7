import { rootArn } from './iam-ids.ts';

/** Whom a policy with a Principal element is asked about. */
export interface PrincipalIdentity {
  /** ARN of the user, of the role session, or of the account's root; `undefined` for a bearer of an OAuth token. */
  arn: string | undefined;
  accountId: string;
  /** ARN of the role behind a role session. */
  roleArn: string | undefined;
  /** A service of the platform that acts by itself, e.g. `bedrock-agentcore.amazonaws.com`. */
  service: string | undefined;
}

/**
 * `direct`: the principal itself is named. `account`: only its account is, which leaves the decision to the account's
 * identity policies. `none`: neither.
 */
export type PrincipalMatch = 'direct' | 'account' | 'none';
export type PrincipalTest = (principal: PrincipalIdentity) => PrincipalMatch;

/** Reads a Principal element: `"*"` or `{"AWS": …, "Service": …}`. Throws `SyntaxError`. */
export function compilePrincipals(source: unknown): PrincipalTest {
  if (source === '*') return () => 'direct';
  if (typeof source !== 'object' || source === null || Array.isArray(source)) {
    throw new SyntaxError('must be "*" or an object of AWS and Service');
  }
  const tests = Object.entries(source).flatMap(([type, value]: [string, unknown]) => {
    const values: unknown[] = Array.isArray(value) ? value : [value];
    return values.map((one) => {
      if (typeof one !== 'string') throw new SyntaxError(`has a ${type} that is not a string`);
      return compileOne(type, one);
    });
  });
  if (tests.length === 0) throw new SyntaxError('names nobody');
  return (principal) => {
    let best: PrincipalMatch = 'none';
    for (const test of tests) {
      const match = test(principal);
      if (match === 'direct') return match;
      if (match === 'account') best = match;
    }
    return best;
  };
}

function compileOne(type: string, value: string): PrincipalTest {
  if (type === 'Service') {
    if (!/^[a-z0-9.-]+\.[a-z]+$/.test(value)) throw new SyntaxError(`has "${value}", which is not a service`);
    return (principal) => (principal.service === value ? 'direct' : 'none');
  }
  if (type !== 'AWS') throw new SyntaxError(`has principals of type "${type}", of which there are none here`);
  if (value === '*') return () => 'direct';
  const account = /^(?:arn:aws:iam::)?(\d{12})(?::root)?$/.exec(value);
  if (account && value.startsWith('arn:') === value.endsWith(':root')) {
    const [, accountId = ''] = account;
    const root = rootArn(accountId);
    return (principal) =>
      principal.arn === root ? 'direct' : principal.arn && principal.accountId === accountId ? 'account' : 'none';
  }
  if (!/^arn:aws:(iam::\d{12}:(user|role)|sts::\d{12}:assumed-role)\/[\w+=,.@/-]+$/.test(value)) {
    throw new SyntaxError(
      `has "${value}", which is not an account, user, role or role session (wildcards are not allowed)`,
    );
  }
  return (principal) => (principal.arn === value || principal.roleArn === value ? 'direct' : 'none');
}
