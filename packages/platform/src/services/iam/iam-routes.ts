import { type DocumentValue, errors } from '@agentplatform/contract';
import {
  type Iam,
  type PolicyOwner,
  parsePolicy,
  type Role,
  roleArn,
  rootArn,
  type User,
  userArn,
} from '../../kernel/auth/index.ts';
import { type KnownRoute, type RouteSet, SIGNED } from '../../kernel/http/index.ts';

/** The directory that is administered. */
export type Administered = Pick<Iam, 'accountId' | 'admin'>;

/** What a route gets: names from its path and the members of its JSON body. */
interface Call {
  name: string;
  item: string;
  body: Record<string, unknown>;
}

interface Action {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/_platform/iam`. */
  path: string;
  /** `iam:…`, which the caller must be allowed on the resource. */
  action: string;
  on: 'user' | 'role' | 'root' | 'all';
  run(call: Call): unknown;
}

/**
 * The administration behind `agentcore iam`: JSON under `/_platform/iam`, signed for service `bedrock-agentcore`, allowed
 * by actions `iam:*`. Policy documents travel as JSON objects or as their text.
 */
export function iamRoutes(iam: Administered): RouteSet {
  const caller: KnownRoute = {
    method: 'GET',
    url: '/_platform/iam/caller',
    credentials: SIGNED,
    ask: ({ principal: { accountId, arn, accessKeyId, tags } }) => ({
      rights: 'known',
      answer: () => ({ accountId, arn, accessKeyId, tags }),
    }),
  };
  return { name: 'iam', routes: [...actionsOf(iam.admin).map((action) => routeOf(iam.accountId, action)), caller] };
}

function routeOf(accountId: string, { method, path, action, on, run }: Action): KnownRoute {
  return {
    method,
    url: `/_platform/iam${path}`,
    credentials: SIGNED,
    ask({ params, body }) {
      const call = { name: params.name ?? '', item: params.item ?? '', body: parseBody(body) };
      const name = call.name || text(call.body, on === 'role' ? 'roleName' : 'userName', '');
      return { rights: { action, resource: resourceOf(accountId, on, name) }, answer: () => run(call) };
    },
  };
}

function actionsOf(admin: Administered['admin']): Action[] {
  const policies = (kind: 'user' | 'role', Kind: string, at: string): Action[] => {
    const owner = (name: string): PolicyOwner => ({ kind, name });
    const get = ({ name }: Call): User | Role => (kind === 'user' ? admin.getUser(name) : admin.getRole(name));
    return [
      {
        method: 'GET',
        path: `${at}/policies`,
        action: `iam:List${Kind}Policies`,
        on: kind,
        run: (call) => ({ policies: Object.keys(get(call).policies) }),
      },
      {
        method: 'GET',
        path: `${at}/policies/:item`,
        action: `iam:Get${Kind}Policy`,
        on: kind,
        run: ({ name, item }) => ({ policyName: item, policyDocument: documentIn(admin.getPolicy(owner(name), item)) }),
      },
      {
        method: 'PUT',
        path: `${at}/policies/:item`,
        action: `iam:Put${Kind}Policy`,
        on: kind,
        run: ({ name, item, body }) => admin.putPolicy(owner(name), item, document(body, 'policyDocument')),
      },
      {
        method: 'DELETE',
        path: `${at}/policies/:item`,
        action: `iam:Delete${Kind}Policy`,
        on: kind,
        run: ({ name, item }) => admin.deletePolicy(owner(name), item),
      },
    ];
  };
  const keys = (on: 'user' | 'root', at: string): Action[] => {
    const owner = (name: string): string | undefined => (on === 'root' ? undefined : name);
    return [
      {
        method: 'GET',
        path: `${at}/access-keys`,
        action: 'iam:ListAccessKeys',
        on,
        run: ({ name }) => ({ accessKeys: admin.listAccessKeys(owner(name)) }),
      },
      {
        method: 'POST',
        path: `${at}/access-keys`,
        action: 'iam:CreateAccessKey',
        on,
        run: ({ name }) => admin.createAccessKey(owner(name)),
      },
      {
        method: 'PATCH',
        path: `${at}/access-keys/:item`,
        action: 'iam:UpdateAccessKey',
        on,
        run: ({ name, item, body }) => admin.setAccessKeyActive(owner(name), item, flag(body, 'active')),
      },
      {
        method: 'DELETE',
        path: `${at}/access-keys/:item`,
        action: 'iam:DeleteAccessKey',
        on,
        run: ({ name, item }) => admin.deleteAccessKey(owner(name), item),
      },
    ];
  };
  return [
    {
      method: 'GET',
      path: '/users',
      action: 'iam:ListUsers',
      on: 'all',
      run: () => ({ users: admin.listUsers().map(userView) }),
    },
    {
      method: 'POST',
      path: '/users',
      action: 'iam:CreateUser',
      on: 'user',
      run: async ({ body }) =>
        userView(await admin.createUser({ userName: text(body, 'userName'), tags: tagsOf(body) })),
    },
    {
      method: 'GET',
      path: '/users/:name',
      action: 'iam:GetUser',
      on: 'user',
      run: ({ name }) => userView(admin.getUser(name)),
    },
    {
      method: 'DELETE',
      path: '/users/:name',
      action: 'iam:DeleteUser',
      on: 'user',
      run: ({ name }) => admin.deleteUser(name),
    },
    ...policies('user', 'User', '/users/:name'),
    ...keys('user', '/users/:name'),
    ...keys('root', ''),
    {
      method: 'GET',
      path: '/roles',
      action: 'iam:ListRoles',
      on: 'all',
      run: () => ({ roles: admin.listRoles().map(roleView) }),
    },
    {
      method: 'POST',
      path: '/roles',
      action: 'iam:CreateRole',
      on: 'role',
      run: async ({ body }) =>
        roleView(
          await admin.createRole({
            roleName: text(body, 'roleName'),
            trustPolicy: document(body, 'trustPolicy'),
            description: text(body, 'description', ''),
            maxSessionSeconds: body.maxSessionSeconds === undefined ? undefined : Number(body.maxSessionSeconds),
            tags: tagsOf(body),
          }),
        ),
    },
    {
      method: 'GET',
      path: '/roles/:name',
      action: 'iam:GetRole',
      on: 'role',
      run: ({ name }) => roleView(admin.getRole(name)),
    },
    {
      method: 'DELETE',
      path: '/roles/:name',
      action: 'iam:DeleteRole',
      on: 'role',
      run: ({ name }) => admin.deleteRole(name),
    },
    {
      method: 'PUT',
      path: '/roles/:name/trust-policy',
      action: 'iam:UpdateAssumeRolePolicy',
      on: 'role',
      run: async ({ name, body }) => roleView(await admin.setTrustPolicy(name, document(body, 'trustPolicy'))),
    },
    ...policies('role', 'Role', '/roles/:name'),
    {
      method: 'POST',
      path: '/validate',
      action: 'iam:ValidatePolicy',
      on: 'all',
      run: ({ body }) => {
        const kind = text(body, 'kind', 'identity');
        if (kind !== 'identity' && kind !== 'resource' && kind !== 'trust') {
          throw errors.invalidField('kind', 'must be identity, resource or trust');
        }
        return { valid: true, statements: parsePolicy(document(body, 'policyDocument'), kind).statements.length };
      },
    },
  ];
}

function userView({ policies, ...user }: User): object {
  return { ...user, createdAt: new Date(user.createdAt).toISOString(), policies: Object.keys(policies) };
}

/** A policy as JSON, as it was given. */
function documentIn(policy: string): DocumentValue {
  return JSON.parse(policy);
}

function roleView({ policies, trustPolicy, ...role }: Role): object {
  const createdAt = new Date(role.createdAt).toISOString();
  return { ...role, createdAt, trustPolicy: documentIn(trustPolicy), policies: Object.keys(policies) };
}

function resourceOf(accountId: string, on: Action['on'], name: string): string {
  if (on === 'all') return '*';
  if (on === 'root') return rootArn(accountId);
  return on === 'user' ? userArn(accountId, name) : roleArn(accountId, name);
}

function parseBody(bytes: Buffer): Record<string, unknown> {
  if (bytes.length === 0) return {};
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch {
    throw errors.validation('The body is not JSON.');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw errors.validation('The body must be a JSON object.');
  }
  return { ...value };
}

function text(body: Record<string, unknown>, name: string, absent?: string): string {
  const value = body[name] ?? absent;
  if (typeof value !== 'string') throw errors.invalidField(name, 'must be a string');
  return value;
}

function flag(body: Record<string, unknown>, name: string): boolean {
  const value = body[name];
  if (typeof value !== 'boolean') throw errors.invalidField(name, 'must be true or false');
  return value;
}

function document(body: Record<string, unknown>, name: string): string {
  const value = body[name];
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) throw errors.invalidField(name, 'must be a policy document');
  try {
    return JSON.stringify(value);
  } catch {
    throw errors.invalidField(name, 'is nested too deeply');
  }
}

function tagsOf(body: Record<string, unknown>): Record<string, string> {
  const { tags = {} } = body;
  if (typeof tags !== 'object' || tags === null || Array.isArray(tags))
    throw errors.invalidField('tags', 'must be an object');
  return Object.fromEntries(
    Object.entries(tags).map(([key, value]: [string, unknown]) => {
      if (typeof value !== 'string') throw errors.invalidField('tags', 'must be strings');
      return [key, value];
    }),
  );
}
