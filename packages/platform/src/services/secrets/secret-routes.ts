import { errors } from '@agentplatform/contract';
import { type KnownCall, type KnownRoute, type RouteSet, readMembers, SIGNED } from '../../kernel/http/index.ts';
import { Secret } from '../../kernel/secrets/index.ts';
import { type SecretScope, type StoredSecret, secretArn, secretNameProblem, secretValueProblem } from './secret.ts';
import type { StoredSecrets } from './stored-secrets.ts';

/** What a route is about, whose right has been asked. */
interface Named {
  scope: SecretScope;
  name: string;
  arn: string;
}

type Answer = (named: Named, call: KnownCall) => Promise<unknown>;

/**
 * `GET /_platform/secrets`, `GET`, `PUT` and `DELETE /_platform/secrets/{name}`: secrets of the account or, with `?runtime=ID`, of one
 * runtime. A value goes in and is never given back.
 */
export function secretRoutes(secrets: StoredSecrets, region: string): RouteSet {
  const route = (method: 'GET' | 'PUT' | 'DELETE', path: string, action: string, answer: Answer): KnownRoute => ({
    method,
    url: `/_platform/secrets${path}`,
    credentials: SIGNED,
    async ask(call) {
      const { accountId, params } = call;
      const { name } = params;
      const scope = { accountId, runtimeId: runtimeOf(call) };
      const arn =
        name === undefined ? secretArn({ region, accountId }, scope, '*', '*') : await secrets.arnFor(scope, name);
      return {
        rights: { action: `agentplatform:${action}`, resource: arn },
        answer: () => answer({ scope, name: name ?? '', arn }, call),
      };
    },
  });
  return {
    name: 'secrets',
    routes: [
      route('GET', '', 'ListSecrets', async ({ scope }) => ({ secrets: (await secrets.list(scope)).map(view) })),
      route('GET', '/:name', 'DescribeSecret', async ({ scope, name }) => {
        const found = await secrets.find(scope, name);
        if (!found) throw missing(name);
        return view(found);
      }),
      route('PUT', '/:name', 'PutSecret', async ({ scope, name, arn }, { body, principal }) => {
        const problem = secretNameProblem(name);
        if (problem) throw errors.invalidField('name', problem);
        await secrets.put(scope, name, readValue(body), { arn, setBy: principal.arn });
      }),
      route('DELETE', '/:name', 'DeleteSecret', async ({ scope, name }) => {
        if (!(await secrets.delete(scope, name))) throw missing(name);
      }),
    ],
  };
}

function missing(name: string): Error {
  return errors.resourceNotFound(`There is no secret ${name} here.`);
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

function view({ arn, name, setAt, setBy, runtimeId }: StoredSecret) {
  return { arn, name, runtimeId, setAt: new Date(setAt).toISOString(), setBy };
}
