import type { Changes } from '../../storage/index.ts';
import type { AccessKeyStore } from '../sigv4.ts';
import { type Authorizer, createAuthorizer } from './authorizer.ts';
import { createCredentialStore, secretContext } from './credential-store.ts';
import { type EssentialsDeps, ensureEssentials, TOKEN_KEY_CONTEXT } from './essentials.ts';
import { createIamAdmin, type IamAdmin } from './iam-admin.ts';
import { activeRootKeys, IamDirectory } from './iam-directory.ts';
import { DEFAULT_ROLE, roleArn, roleSessionArn } from './iam-ids.ts';
import type { IamChange } from './iam-records.ts';
import { IAM_TOPIC, type IamStore } from './iam-store.ts';
import type { Sealer } from './ports.ts';
import { createRoleSessions, type RoleSessions } from './role-sessions.ts';
import { SessionTokens } from './session-tokens.ts';

export interface IamDeps extends EssentialsDeps {
  store: IamStore;
  region: string;
  /** Tells what other servers on the same store have written. */
  changes: Changes;
  /** Whether a sandbox that role credentials were issued to is still there; without it such credentials count for nothing. */
  sandboxLives?(sandboxId: string): boolean;
}

/** The access management of the platform, assembled. */
export interface Iam extends RoleSessions {
  accountId: string;
  /** The execution role that always exists. */
  defaultRoleArn: string;
  keys: AccessKeyStore;
  authorizer: Authorizer;
  admin: IamAdmin;
  /** Whether the policies of a role allow an action to whoever was `given` these; false for a role that does not exist. */
  roleMay(roleArn: string, action: string, resource: string, given?: readonly string[]): boolean;
  /** The oldest active access key of the account's root, with its secret: what goes into the credentials file. */
  rootCredentials(): Promise<{ accessKeyId: string; secretAccessKey: string }>;
  /** Seals every secret anew, under the sealer's current key: call it after a new master key is there, before the old one goes. */
  reseal(): Promise<number>;
}

/**
 * Opens the access management; makes the account, an access key of its root and the default role where they are missing.
 * Throws when `accountId` is not the one that the store was made with.
 */
export async function openIam(deps: IamDeps): Promise<Iam> {
  const { store, sealer, clock, random, region, changes } = deps;
  if (deps.accountId !== undefined && !/^\d{12}$/.test(deps.accountId)) {
    throw new Error(`the account id must be 12 digits, not "${deps.accountId}"`);
  }
  const directory = await IamDirectory.open(store);
  changes.subscribe([IAM_TOPIC], () => directory.refresh());
  const account = await ensureEssentials(directory, deps);
  const { accountId } = account;
  if (deps.accountId !== undefined && deps.accountId !== accountId) {
    throw new Error(`this data belongs to account ${accountId}, not to ${deps.accountId}`);
  }
  const tokenKey = Buffer.from(await sealer.open(account.sealedTokenKey, TOKEN_KEY_CONTEXT), 'base64');
  const tokens = new SessionTokens(tokenKey, random);
  const authorizer = createAuthorizer({ directory, clock, region });
  const sessions = createRoleSessions({ directory, authorizer, tokens, clock, random, accountId });
  return {
    ...sessions,
    accountId,
    defaultRoleArn: roleArn(accountId, DEFAULT_ROLE),
    keys: createCredentialStore({
      directory,
      sealer,
      tokens,
      accountId,
      clock,
      sandboxLives: (id) => deps.sandboxLives?.(id) ?? false,
      need: () => changes.need(),
    }),
    authorizer,
    admin: createIamAdmin({ directory, sealer, clock, random, accountId }),
    roleMay(arn, action, resource, given) {
      const role = [...directory.state.roles.values()].find((one) => one.arn === arn);
      if (!role) return false;
      const session = roleSessionArn(accountId, role.roleName, 'platform');
      const principal = { kind: 'iam', accountId, arn: session, accessKeyId: '', tags: role.tags, given } as const;
      return authorizer.authorize({ principal, action, resource }).allowed;
    },
    async rootCredentials() {
      const [key] = activeRootKeys(directory.state).sort((a, b) => a.createdAt - b.createdAt);
      if (!key) throw new Error("the account's root has no active access key");
      const secretAccessKey = await sealer.open(key.sealedSecret, secretContext(key.accessKeyId));
      return { accessKeyId: key.accessKeyId, secretAccessKey };
    },
    reseal: () => reseal(directory, sealer),
  };
}

async function reseal(directory: IamDirectory, sealer: Sealer): Promise<number> {
  const { account, accessKeys } = directory.state;
  const anew = async (sealed: string, context: string): Promise<[string, string]> => [
    sealed,
    await sealer.seal(await sealer.open(sealed, context), context),
  ];
  const pairs = [...accessKeys.values()].map((key) => anew(key.sealedSecret, secretContext(key.accessKeyId)));
  if (account) pairs.push(anew(account.sealedTokenKey, TOKEN_KEY_CONTEXT));
  const replaced = new Map(await Promise.all(pairs));
  return directory.update((state) => {
    // What was sealed meanwhile is under the new key already.
    const changes: IamChange[] = [...state.accessKeys.values()].flatMap((key) => {
      const sealedSecret = replaced.get(key.sealedSecret);
      return sealedSecret === undefined
        ? []
        : [{ put: { kind: 'access-key', name: key.accessKeyId, data: { ...key, sealedSecret } } }];
    });
    const sealedTokenKey = replaced.get(state.account?.sealedTokenKey ?? '');
    if (state.account && sealedTokenKey !== undefined) {
      changes.push({ put: { kind: 'account', name: 'account', data: { ...state.account, sealedTokenKey } } });
    }
    return { changes, result: changes.length };
  });
}
