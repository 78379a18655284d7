import { hash } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import { secretContext } from './credential-store.ts';
import { activeRootKeys, type IamDirectory } from './iam-directory.ts';
import { DEFAULT_ROLE, newAccountId, newId, newSecret, roleArn } from './iam-ids.ts';
import type { AccessKey, Account, IamChange, Role } from './iam-records.ts';
import type { RandomBytes, Sealer } from './ports.ts';
import { defaultTrustPolicy } from './role-sessions.ts';

/** `given`: only the credential providers that the deployer of an agent has given it. */
export type ProviderUse = 'all' | 'given';

export interface EssentialsDeps {
  sealer: Sealer;
  clock: Clock;
  random: RandomBytes;
  /** 12 digits; made up at first boot when not given. */
  accountId?: string;
  /** Which credential providers the default role may use; all when not given. */
  defaultRoleProviders?: ProviderUse;
  /** Told of what the account had lost and got back now. */
  onRestored?(what: string): void;
  /** Told of what an earlier version had made and is now as this version makes it. */
  onRenewed?(what: string): void;
}

/** The default role's policy. */
const POLICY = 'data-plane';

/** SHA-256 of what earlier versions wrote there. */
const FORMER: ReadonlySet<string> = new Set([
  '622ea3ffceb9866db4385a8b0c1c1e63e7ff693112ef4f06aa2dc55f3e22733f',
  '6c1f5a6c51ac6c8ce3416adf0e1062c435332e9c53254d67878755af51178830',
  '974aae7fdafe3e661498a1a45b0c308064b5ceb5d98a55a3a28d10ceb9130255',
  '608f7b234a9d2ebb15925b0bce7e5ca407467203fb02aec24d4dbe956108fff9',
  'bdaf6087152b6b0c236cda8a01ad19fac9c62331732bd0c1237c0f72c0cca3d5',
  'c3b455ce0f76049f100831c77324ae3a9bd83a94093d75fd1b9afa9c91efd821',
  '39d8ad9a19c90efa4331d15e93770545fc06a0cfa35046f30f0a920f941ab3b4',
]);

function digestOf(text = ''): string {
  return hash('sha256', text);
}

/** What binds the account's sealed key of session tokens to its purpose. */
export const TOKEN_KEY_CONTEXT = 'iam/session-token-key';

/**
 * The account, made at first boot. It always has an active access key of its root, without which nobody could ever manage access
 * again, and the role that the server announces: what is missing of these is made.
 */
export async function ensureEssentials(directory: IamDirectory, deps: EssentialsDeps): Promise<Account> {
  const { state } = directory;
  await renewDefaultRole(directory, deps);
  if (state.account && activeRootKeys(state).length > 0 && state.roles.has(DEFAULT_ROLE)) return state.account;
  const newAccount = await makeAccount(deps);
  const newKey = await makeRootKey(deps);
  // Another server on the same store may have been first, so what is missing is seen there.
  const { account, missing } = await directory.update((state) => {
    const account = state.account ?? newAccount;
    const changes: IamChange[] = [];
    const missing: string[] = [];
    if (!state.account) changes.push({ put: { kind: 'account', name: 'account', data: account } });
    if (activeRootKeys(state).length === 0) {
      changes.push({ put: { kind: 'access-key', name: newKey.accessKeyId, data: newKey } });
      missing.push('an active access key of its root');
    }
    if (!state.roles.has(DEFAULT_ROLE)) {
      changes.push({ put: { kind: 'role', name: DEFAULT_ROLE, data: makeDefaultRole(account.accountId, deps) } });
      missing.push(`the role "${DEFAULT_ROLE}"`);
    }
    return { changes, result: { account, missing: state.account ? missing : [] } };
  });
  for (const what of missing) deps.onRestored?.(what);
  return account;
}

/**
 * Gives the default role the rights of today where it still has, to the letter, those that an earlier version or another configuration gave it. What
 * somebody has changed is theirs.
 */
async function renewDefaultRole(
  directory: IamDirectory,
  { onRenewed, defaultRoleProviders = 'all' }: EssentialsDeps,
): Promise<void> {
  const wanted = DATA_PLANES[defaultRoleProviders];
  const isFormer = (role: Role | undefined): role is Role => {
    const own = role?.policies[POLICY];
    const made = own !== undefined && Object.values(DATA_PLANES).includes(own);
    return own !== wanted && (made || FORMER.has(digestOf(own)));
  };
  if (!isFormer(directory.state.roles.get(DEFAULT_ROLE))) return;
  const renewed = await directory.update((state) => {
    const role = state.roles.get(DEFAULT_ROLE);
    if (!isFormer(role)) return { changes: [], result: false };
    const data = { ...role, policies: { ...role.policies, [POLICY]: wanted } };
    return { changes: [{ put: { kind: 'role', name: DEFAULT_ROLE, data } }], result: true };
  });
  if (renewed) onRenewed?.(`the policy "${POLICY}" of the role "${DEFAULT_ROLE}"`);
}

async function makeAccount({ accountId, sealer, random }: EssentialsDeps): Promise<Account> {
  return {
    accountId: accountId ?? newAccountId(random),
    sealedTokenKey: await sealer.seal(random(32).toString('base64'), TOKEN_KEY_CONTEXT),
  };
}

async function makeRootKey({ sealer, clock, random }: EssentialsDeps): Promise<AccessKey> {
  const accessKeyId = newId('AKIA', random);
  return {
    accessKeyId,
    userName: undefined,
    active: true,
    createdAt: clock.now(),
    sealedSecret: await sealer.seal(newSecret(random), secretContext(accessKeyId)),
  };
}

function makeDefaultRole(accountId: string, { clock, random, defaultRoleProviders = 'all' }: EssentialsDeps): Role {
  return {
    roleName: DEFAULT_ROLE,
    roleId: newId('AROA', random),
    arn: roleArn(accountId, DEFAULT_ROLE),
    createdAt: clock.now(),
    description: 'What agents run as when nothing else is said',
    tags: {},
    policies: { [POLICY]: DATA_PLANES[defaultRoleProviders] },
    trustPolicy: defaultTrustPolicy(accountId),
    maxSessionSeconds: 43_200,
  };
}

const NAMESPACE = 'bedrock-agentcore:namespace';
/** Holds for what the agent's own deployer has given it, and for nothing else of the account. */
const GIVEN = { Bool: { 'agentplatform:ResourceIsGiven': 'true' } };

/** For whom its workload access token speaks; nothing that pays. */
const GET_CREDENTIALS = ['bedrock-agentcore:GetResourceApiKey', 'bedrock-agentcore:GetResourceOauth2Token'];
/** Each is asked on three resources: the vault and the workload, which the token names, and the provider, which the agent chooses. */
const USE_GIVEN_PROVIDERS = [
  {
    Sid: 'UseGivenProviders',
    Effect: 'Allow',
    Action: GET_CREDENTIALS,
    Resource: '*',
    Condition: GIVEN,
  },
  {
    Effect: 'Allow',
    Action: GET_CREDENTIALS,
    Resource: ['token-vault/default', 'workload-identity-directory/default/workload-identity/*'].map(
      (of) => `arn:aws:bedrock-agentcore:*:*:${of}`,
    ),
  },
];

/**
 * What an agent needs at work: use things, not make, change or delete them, nor manage access. Each action stands here in full, so that no operation of
 * tomorrow is among them unasked (`tests/security/whose-operations.test.ts`).
 */
const dataPlane = (providers: ProviderUse): string =>
  JSON.stringify({
    Version: '2012-10-17',
    Statement: [
      {
        Sid: 'UseDataPlane',
        Effect: 'Allow',
        Action: [
          ...(providers === 'all' ? GET_CREDENTIALS : []),
          // Not the commands and shells in other sessions' sandboxes, nor their end, nor to speak for an end user or as another workload: an
          // agent gets its own workload access token with each request, and ends its own session by its exit.
          'bedrock-agentcore:InvokeAgentRuntime',
          'bedrock-agentcore:InvokeAgentRuntimeWithWebSocketStream',
          'bedrock-agentcore:GetAgentCard',
          'bedrock-agentcore:InvokeCodeInterpreter',
          'bedrock-agentcore:InvokeGateway',
          // Its own alone: what another has started asks for a right that this role does not have.
          'bedrock-agentcore:StartCodeInterpreterSession',
          'bedrock-agentcore:GetCodeInterpreterSession',
          'bedrock-agentcore:ListCodeInterpreterSessions',
          'bedrock-agentcore:StopCodeInterpreterSession',
          'bedrock:InvokeModel',
          'bedrock:InvokeModelWithResponseStream',
          'lambda:InvokeFunction',
        ],
        Resource: '*',
      },
      ...(providers === 'given' ? USE_GIVEN_PROVIDERS : []),
      {
        Sid: 'UseGivenMemories',
        Effect: 'Allow',
        Action: [
          'bedrock-agentcore:CreateEvent',
          'bedrock-agentcore:GetEvent',
          'bedrock-agentcore:ListEvents',
          'bedrock-agentcore:ListSessions',
          // Records whose ids it knows; for those of a place see below.
          'bedrock-agentcore:GetMemoryRecord',
          'bedrock-agentcore:DeleteMemoryRecord',
          'bedrock-agentcore:BatchCreateMemoryRecords',
          'bedrock-agentcore:BatchUpdateMemoryRecords',
          'bedrock-agentcore:BatchDeleteMemoryRecords',
        ],
        Resource: '*',
        Condition: GIVEN,
      },
      // Not who else is remembered: an agent knows whom it serves, and names the place. A path of one name is everybody's.
      ...Object.entries({ Null: { [NAMESPACE]: 'false' }, StringLike: { [`${NAMESPACE}Path`]: '/?*/?*' } }).map(
        ([operator, keys]) => ({
          Effect: 'Allow',
          Action: ['bedrock-agentcore:RetrieveMemoryRecords', 'bedrock-agentcore:ListMemoryRecords'],
          Resource: '*',
          Condition: { ...GIVEN, [operator]: keys },
        }),
      ),
    ],
  });

const DATA_PLANES: Readonly<Record<ProviderUse, string>> = { all: dataPlane('all'), given: dataPlane('given') };
