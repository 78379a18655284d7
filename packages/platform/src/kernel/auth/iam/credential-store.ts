import { errors } from '@agentplatform/contract';
import type { Clock } from '../../clock.ts';
import { Lru } from '../../lru.ts';
import type { IamPrincipal } from '../principal.ts';
import type { AccessKeyStore, Credential } from '../sigv4.ts';
import type { IamDirectory } from './iam-directory.ts';
import { roleSessionArn, rootArn } from './iam-ids.ts';
import type { AccessKey } from './iam-records.ts';
import type { Sealer } from './ports.ts';
import type { KeySessionClaims, RoleSessionClaims, SessionTokens } from './session-tokens.ts';

export interface CredentialStoreDeps {
  directory: IamDirectory;
  sealer: Sealer;
  tokens: SessionTokens;
  accountId: string;
  clock: Clock;
  /** Whether a sandbox that credentials were issued to is still there. */
  sandboxLives(sandboxId: string): boolean;
  /** Throws when the directory may be older than it may be. */
  need(): void;
}

/** What binds a sealed secret to its access key. */
export const secretContext = (accessKeyId: string): string => `iam/access-key/${accessKeyId}`;

/**
 * Finds the secret behind an access key: long-lived ones in the directory, short-lived ones inside their session token.
 * A key answers with a Promise the first time it is used, from memory afterwards.
 */
export function createCredentialStore(deps: CredentialStoreDeps): AccessKeyStore {
  const opened = new Lru<string, { sealed: string; credential: Credential }>(10_000);
  const sessions = new Lru<string, { claims: RoleSessionClaims; credential: Credential }>(10_000);
  const { accountId } = deps;

  /** Whose key it is, while it counts. */
  function principalOf({ accessKeyId, userName, active }: AccessKey): IamPrincipal | undefined {
    const user = userName === undefined ? undefined : deps.directory.state.users.get(userName);
    if (!active || (userName !== undefined && !user)) return undefined;
    const arn = user ? user.arn : rootArn(accountId);
    return { kind: 'iam', accountId, arn, accessKeyId, tags: user?.tags ?? NO_TAGS };
  }

  function longLived(key: AccessKey): Credential | undefined | Promise<Credential> {
    const { accessKeyId } = key;
    const principal = principalOf(key);
    if (!principal) return undefined;
    const known = opened.get(accessKeyId);
    if (known && known.sealed === key.sealedSecret && known.credential.principal.tags === principal.tags) {
      return known.credential;
    }
    return deps.sealer.open(key.sealedSecret, secretContext(accessKeyId)).then((secretAccessKey) => {
      const credential = { secretAccessKey, principal };
      opened.set(accessKeyId, { sealed: key.sealedSecret, credential });
      return credential;
    });
  }

  /** The principal that owns the key, while the key is valid. */
  function asKey({ ofKey, secretAccessKey }: KeySessionClaims): Credential | undefined {
    const key = deps.directory.state.accessKeys.get(ofKey);
    const principal = key && principalOf(key);
    return principal && { secretAccessKey, principal };
  }

  function shortLived(accessKeyId: string, token: string): Credential | undefined {
    const claims = sessions.get(token)?.claims ?? deps.tokens.open(token);
    if (claims?.accessKeyId !== accessKeyId) return undefined;
    if (claims.expiresAt <= deps.clock.now()) {
      throw errors.expiredToken('The security token included in the request is expired.');
    }
    return 'ofKey' in claims ? asKey(claims) : asRole(claims, token);
  }

  function asRole(claims: RoleSessionClaims, token: string): Credential | undefined {
    let credential = sessions.get(token)?.credential;
    if (!credential) {
      const { accessKeyId, secretAccessKey, roleName, sessionName, tags, sourceIdentity, sandboxId, given } = claims;
      const arn = roleSessionArn(accountId, roleName, sessionName);
      const principal = { kind: 'iam', accountId, arn, accessKeyId, tags, sourceIdentity, sandboxId, given } as const;
      credential = { secretAccessKey, principal };
      sessions.set(token, { claims, credential });
    }
    if (claims.sandboxId !== undefined && !deps.sandboxLives(claims.sandboxId)) {
      throw errors.expiredToken('The session that the security token was issued to has ended.');
    }
    const role = deps.directory.state.roles.get(claims.roleName);
    return role?.roleId === claims.roleId ? credential : undefined;
  }

  return {
    find(accessKeyId, sessionToken) {
      deps.need();
      if (sessionToken !== undefined) return shortLived(accessKeyId, sessionToken);
      const key = deps.directory.state.accessKeys.get(accessKeyId);
      return key && longLived(key);
    },
  };
}

const NO_TAGS: Record<string, string> = {};
