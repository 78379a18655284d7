import { errors } from '@agentplatform/contract';
import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { type AdminGuard, readMembers } from '../../kernel/http/admin-guard.ts';
import { Secret } from '../../kernel/secrets/index.ts';
import {
  type AgentSecret,
  agentSecretArn,
  type SecretScope,
  secretNameProblem,
  secretValueProblem,
} from './agent-secret.ts';
import type { AgentSecrets } from './agent-secrets.ts';

interface Route {
  Params: { name: string };
  Querystring: { runtime?: string };
}

/**
 * `GET /_platform/secrets`, `PUT` and `DELETE /_platform/secrets/{name}`: secrets of agents, of the account or, with `?runtime=ID`, of one
 * runtime. A value goes in and is never given back.
 */
export function agentSecretRoutes(secrets: AgentSecrets, guard: AdminGuard): FastifyPluginAsync {
  const enter = async (request: FastifyRequest<Route>, action: string, name: string) => {
    const runtimeId = runtimeOf(request.query.runtime);
    const arn = (accountId: string): string => agentSecretArn({ accountId, runtimeId }, name);
    const call = await guard(request, `agentplatform:${action}`, arn);
    const scope: SecretScope = { accountId: call.accountId, runtimeId };
    return { ...call, scope };
  };
  return async (app) => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (_request, _payload, done) => done(null));
    app.get<Route>('/_platform/secrets', async (request) => {
      const { scope } = await enter(request, 'ListSecrets', '*');
      return { secrets: (await secrets.list(scope)).map(view) };
    });
    app.put<Route>('/_platform/secrets/:name', async (request, reply) => {
      const { name } = request.params;
      const { scope, body, principal } = await enter(request, 'PutSecret', name);
      const problem = secretNameProblem(name);
      if (problem) throw errors.invalidField('name', problem);
      await secrets.put(scope, name, readValue(body), principal.arn);
      return reply.code(204).send();
    });
    app.delete<Route>('/_platform/secrets/:name', async (request, reply) => {
      const { name } = request.params;
      const { scope } = await enter(request, 'DeleteSecret', name);
      if (!(await secrets.delete(scope, name))) throw errors.resourceNotFound(`There is no secret ${name} here.`);
      return reply.code(204).send();
    });
  };
}

function runtimeOf(id: string | undefined): string | undefined {
  if (id !== undefined && !/^[^/\s*]+$/.test(id)) throw errors.invalidField('runtime', 'must be the id of a runtime');
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
