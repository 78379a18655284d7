import { errors } from '@agentplatform/contract';
import { readMembers } from '../../kernel/http/routes/read-members.ts';
import { type KnownCall, type KnownRoute, type RouteSet, SIGNED } from '../../kernel/http/routes/route.ts';
import { Secret } from '../../kernel/secrets/index.ts';
import {
  type AgentSecret,
  agentSecretArn,
  type SecretScope,
  secretNameProblem,
  secretValueProblem,
} from './secret.ts';
import type { AgentSecrets } from './stored-secrets.ts';

type Answer = (scope: SecretScope, name: string, call: KnownCall) => Promise<unknown>;

/**
 * `GET /_platform/secrets`, `PUT` and `DELETE /_platform/secrets/{name}`: secrets of agents, of the account or, with `?runtime=ID`, of one
 * runtime. A value goes in and is never given back.
 */
export function agentSecretRoutes(secrets: AgentSecrets): RouteSet {
  const route = (method: 'GET' | 'PUT' | 'DELETE', path: string, action: string, answer: Answer): KnownRoute => ({
    method,
    url: `/_platform/secrets${path}`,
    credentials: SIGNED,
    ask(call) {
      const { accountId, params } = call;
      const { name = '*' } = params;
      const scope = { accountId, runtimeId: runtimeOf(call) };
      return {
        rights: { action: `agentplatform:${action}`, resource: agentSecretArn(scope, name) },
        answer: () => answer(scope, name, call),
      };
    },
  });
  return {
    name: 'secrets',
    routes: [
      route('GET', '', 'ListSecrets', async (scope) => ({ secrets: (await secrets.list(scope)).map(view) })),
      route('PUT', '/:name', 'PutSecret', async (scope, name, { body, principal }) => {
        const problem = secretNameProblem(name);
        if (problem) throw errors.invalidField('name', problem);
        await secrets.put(scope, name, readValue(body), principal.arn);
      }),
      route('DELETE', '/:name', 'DeleteSecret', async (scope, name) => {
        if (!(await secrets.delete(scope, name))) throw errors.resourceNotFound(`There is no secret ${name} here.`);
      }),
    ],
  };
}

function runtimeOf({ query }: KnownCall): string | undefined {
  const id = query.get('runtime') ?? undefined;
  if (id !== undefined && !/^[^/\s*?]+$/.test(id)) throw errors.invalidField('runtime', 'must be the id of a runtime');
  return id;
}

/** The text of an error has nothing of the body. */
function readValue(body: Buffer): Secret {
  const { value } = readMembers(body, '{"value": …}');
  const problem = typeof value === 'string' ? secretValueProblem(value) : 'must be a text';
  if (typeof value !== 'string' || problem) throw errors.invalidField('value', problem ?? 'must be a text');
  return new Secret(value);
}

function view({ name, setAt, setBy, runtimeId }: AgentSecret) {
  return { name, runtimeId, setAt: new Date(setAt).toISOString(), setBy };
}
