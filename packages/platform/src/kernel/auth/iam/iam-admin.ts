import { errors } from '@agentplatform/contract';
import type { Clock } from '../../clock.ts';
import { secretContext } from './credential-store.ts';
import { activeRootKeys, type IamDirectory, type IamState } from './iam-directory.ts';
import { DEFAULT_ROLE, newId, newSecret, roleArn, userArn } from './iam-ids.ts';
import { type PolicyKind, parsePolicy } from './iam-policy-document.ts';
import type { AccessKey, IamChange, Role, User } from './iam-records.ts';
import type { RandomBytes, Sealer } from './ports.ts';

export interface IamAdminDeps {
  directory: IamDirectory;
  sealer: Sealer;
  clock: Clock;
  random: RandomBytes;
  accountId: string;
}

export interface NewRole {
  roleName: string;
  trustPolicy: string;
  description?: string;
  maxSessionSeconds?: number;
  tags?: Record<string, string>;
}

export type PolicyOwner = { kind: 'user'; name: string } | { kind: 'role'; name: string };
/** An access key as it may be shown: without its secret. */
export type AccessKeyView = Omit<AccessKey, 'sealedSecret'>;
export interface NewAccessKey extends AccessKeyView {
  /** Given this once. */
  secretAccessKey: string;
}

const MOST = { users: 5_000, roles: 1_000, policies: 20, keysOfOne: 2, tags: 50 };

/**
 * Users, roles, their inline policies and access keys. Throws `ServiceError`: ValidationException for bad input,
 * ConflictException for what exists or is in use, ResourceNotFoundException, ServiceQuotaExceededException.
 */
export function createIamAdmin(deps: IamAdminDeps) {
  const { directory, accountId } = deps;
  const change = <T>(decide: (state: IamState) => { changes: IamChange[]; result: T }): Promise<T> =>
    directory.update(decide);

  function owner(state: IamState, { kind, name }: PolicyOwner): User | Role {
    const found = kind === 'user' ? state.users.get(name) : state.roles.get(name);
    if (!found) throw errors.resourceNotFound(`There is no ${kind} "${shown(name)}".`);
    return found;
  }

  function putOwner(of: PolicyOwner, data: User | Role): IamChange {
    if ('userName' in data) return { put: { kind: 'user', name: of.name, data } };
    return { put: { kind: 'role', name: of.name, data } };
  }

  return {
    listUsers: (): User[] => [...directory.state.users.values()],
    getUser: (name: string): User => {
      const user = directory.state.users.get(name);
      if (!user) throw errors.resourceNotFound(`There is no user "${shown(name)}".`);
      return user;
    },
    createUser: async (input: { userName: string; tags?: Record<string, string> }): Promise<User> => {
      const { userName, tags = {} } = input;
      assertName('userName', userName);
      assertTags(tags);
      return change((state) => {
        if (state.users.has(userName)) throw errors.conflict(`A user "${userName}" exists already.`);
        if (state.users.size >= MOST.users) throw errors.quota(`There can be ${MOST.users} users.`);
        const data: User = {
          userName,
          userId: newId('AIDA', deps.random),
          arn: userArn(accountId, userName),
          createdAt: deps.clock.now(),
          tags,
          policies: {},
        };
        return { changes: [{ put: { kind: 'user', name: userName, data } }], result: data };
      });
    },
    /** Its access keys go with it. */
    deleteUser: (name: string): Promise<void> =>
      change((state) => {
        owner(state, { kind: 'user', name });
        const keys = [...state.accessKeys.values()].filter((key) => key.userName === name);
        const removed: IamChange[] = keys.map((key) => ({ remove: { kind: 'access-key', name: key.accessKeyId } }));
        return { changes: [...removed, { remove: { kind: 'user', name } }], result: undefined };
      }),

    listRoles: (): Role[] => [...directory.state.roles.values()],
    getRole: (name: string): Role => {
      const role = directory.state.roles.get(name);
      if (!role) throw errors.resourceNotFound(`There is no role "${shown(name)}".`);
      return role;
    },
    createRole: async (input: NewRole): Promise<Role> => {
      const { roleName, trustPolicy, description = '', maxSessionSeconds = 3_600, tags = {} } = input;
      assertName('roleName', roleName);
      assertTags(tags);
      parsePolicy(trustPolicy, 'trust');
      if (description.length > 1_000) throw errors.invalidField('description', 'must be at most 1000 characters');
      if (!Number.isInteger(maxSessionSeconds) || maxSessionSeconds < 3_600 || maxSessionSeconds > 43_200) {
        throw errors.invalidField('maxSessionSeconds', 'must be 3600 to 43200');
      }
      return change((state) => {
        if (state.roles.has(roleName)) throw errors.conflict(`A role "${roleName}" exists already.`);
        if (state.roles.size >= MOST.roles) throw errors.quota(`There can be ${MOST.roles} roles.`);
        const data: Role = {
          roleName,
          roleId: newId('AROA', deps.random),
          arn: roleArn(accountId, roleName),
          createdAt: deps.clock.now(),
          description,
          tags,
          policies: {},
          trustPolicy,
          maxSessionSeconds,
        };
        return { changes: [{ put: { kind: 'role', name: roleName, data } }], result: data };
      });
    },
    setTrustPolicy: async (name: string, trustPolicy: string): Promise<Role> => {
      parsePolicy(trustPolicy, 'trust');
      return change((state) => {
        const role = state.roles.get(name);
        if (!role) throw errors.resourceNotFound(`There is no role "${shown(name)}".`);
        const data = { ...role, trustPolicy };
        return { changes: [{ put: { kind: 'role', name, data } }], result: data };
      });
    },
    /** Credentials issued for it end at once. */
    deleteRole: (name: string): Promise<void> =>
      change((state) => {
        owner(state, { kind: 'role', name });
        if (name === DEFAULT_ROLE) {
          throw errors.conflict(`The role "${name}" stays: agents run as it when nothing else is said.`, {
            remedy: 'Take from it what it may do instead: agentcore iam delete-policy.',
          });
        }
        return { changes: [{ remove: { kind: 'role', name } }], result: undefined };
      }),

    putPolicy: async (of: PolicyOwner, policyName: string, document: string): Promise<void> => {
      assertName('policyName', policyName);
      const kind: PolicyKind = 'identity';
      parsePolicy(document, kind);
      return change((state) => {
        const data = owner(state, of);
        const policies = { ...data.policies, [policyName]: document };
        if (Object.keys(policies).length > MOST.policies) {
          throw errors.quota(`A ${of.kind} can have ${MOST.policies} policies.`);
        }
        return { changes: [putOwner(of, { ...data, policies })], result: undefined };
      });
    },
    getPolicy: (of: PolicyOwner, policyName: string): string => policyOf(owner(directory.state, of), policyName),
    deletePolicy: (of: PolicyOwner, policyName: string): Promise<void> =>
      change((state) => {
        const data = owner(state, of);
        policyOf(data, policyName);
        const { [policyName]: _, ...policies } = data.policies;
        return { changes: [putOwner(of, { ...data, policies })], result: undefined };
      }),

    listAccessKeys: (userName: string | undefined): AccessKeyView[] => {
      if (userName !== undefined) owner(directory.state, { kind: 'user', name: userName });
      return [...directory.state.accessKeys.values()].filter((key) => key.userName === userName).map(view);
    },
    /** `userName` undefined makes a key of the account's root. */
    createAccessKey: async (userName: string | undefined): Promise<NewAccessKey> => {
      const accessKeyId = newId('AKIA', deps.random);
      const secretAccessKey = newSecret(deps.random);
      const sealedSecret = await deps.sealer.seal(secretAccessKey, secretContext(accessKeyId));
      return change((state) => {
        if (userName !== undefined) owner(state, { kind: 'user', name: userName });
        const count = [...state.accessKeys.values()].filter((key) => key.userName === userName).length;
        if (count >= MOST.keysOfOne) throw errors.quota(`A user can have ${MOST.keysOfOne} access keys.`);
        const data: AccessKey = { accessKeyId, userName, active: true, createdAt: deps.clock.now(), sealedSecret };
        const put: IamChange = { put: { kind: 'access-key', name: accessKeyId, data } };
        return { changes: [put], result: { ...view(data), secretAccessKey } };
      });
    },
    setAccessKeyActive: (userName: string | undefined, accessKeyId: string, active: boolean): Promise<AccessKeyView> =>
      change((state) => {
        const data = { ...keyOf(state, userName, accessKeyId), active };
        if (!active) assertNotLastOfRoot(state, accessKeyId);
        return { changes: [{ put: { kind: 'access-key', name: accessKeyId, data } }], result: view(data) };
      }),
    deleteAccessKey: (userName: string | undefined, accessKeyId: string): Promise<void> =>
      change((state) => {
        keyOf(state, userName, accessKeyId);
        assertNotLastOfRoot(state, accessKeyId);
        return { changes: [{ remove: { kind: 'access-key', name: accessKeyId } }], result: undefined };
      }),
  };
}

export type IamAdmin = ReturnType<typeof createIamAdmin>;

function keyOf(state: IamState, userName: string | undefined, accessKeyId: string): AccessKey {
  const key = state.accessKeys.get(accessKeyId);
  if (!key || key.userName !== userName)
    throw errors.resourceNotFound(`There is no access key "${shown(accessKeyId)}".`);
  return key;
}

/** Without any, nobody could ever make another. */
function assertNotLastOfRoot(state: IamState, accessKeyId: string): void {
  const active = activeRootKeys(state);
  if (active.length !== 1 || active[0]?.accessKeyId !== accessKeyId) return;
  throw errors.conflict(`"${accessKeyId}" is the only access key of the account itself that is on.`, {
    remedy: 'Make or switch on another one first: agentcore iam create-key, or set-key.',
  });
}

function policyOf(data: User | Role, name: string): string {
  const document = Object.hasOwn(data.policies, name) ? data.policies[name] : undefined;
  if (document === undefined) throw errors.resourceNotFound(`There is no policy "${shown(name)}".`);
  return document;
}

function view({ sealedSecret: _, ...rest }: AccessKey): AccessKeyView {
  return rest;
}

function assertName(field: string, name: string): void {
  if (!/^[A-Za-z0-9+=,.@_-]{1,64}$/.test(name) || name === '__proto__') {
    throw errors.invalidField(field, 'must be 1 to 64 of the characters A-Z a-z 0-9 + = , . @ _ -');
  }
}

/** Tags of users, roles and role sessions (limits of the IAM and STS APIs). */
export function assertTags(tags: Record<string, string>): void {
  const entries = Object.entries(tags);
  if (entries.length > MOST.tags) throw errors.invalidField('tags', `must be at most ${MOST.tags}`);
  const seen = new Set<string>();
  for (const [key, value] of entries) {
    if (!/^[\p{L}\p{Z}\p{N}_.:/=+\-@]{1,128}$/u.test(key) || !/^[\p{L}\p{Z}\p{N}_.:/=+\-@]{0,256}$/u.test(value)) {
      throw errors.invalidField('tags', 'must be letters, digits, spaces or _.:/=+-@, keys to 128 and values to 256');
    }
    if (seen.has(key.toLowerCase())) throw errors.invalidField('tags', `hold "${key}" twice, but for its case`);
    seen.add(key.toLowerCase());
  }
}

function shown(name: string): string {
  return name.slice(0, 80);
}
