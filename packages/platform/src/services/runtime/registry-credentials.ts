import { errors } from '@agentplatform/contract';
import type { FastifyPluginAsync } from 'fastify';
import { type AdminGuard, readMembers } from '../../kernel/http/admin-guard.ts';
import { parseReference, type RegistryCredentials } from '../../kernel/images/index.ts';
import { Secret, type Secrets } from '../../kernel/secrets/index.ts';

/** User names and passwords of private registries, kept among the secrets of the account that stored them. */
export class RegistryCredentialsStore {
  readonly #secrets: Secrets;

  constructor(secrets: Secrets) {
    this.#secrets = secrets;
  }

  async put(accountId: string, host: string, credentials: RegistryCredentials): Promise<void> {
    await this.#secrets.put(this.#name(accountId, host), new Secret(JSON.stringify(credentials)));
  }

  async delete(accountId: string, host: string): Promise<boolean> {
    return this.#secrets.delete(this.#name(accountId, host));
  }

  /** The credentials for the registry that `uri` names; undefined when none are stored or it names no registry. */
  async forImage(accountId: string, uri: string): Promise<RegistryCredentials | undefined> {
    if (/^(platform\/|oci:|oci-archive:|docker-archive:)/.test(uri)) return undefined;
    const kept = await this.#secrets.get(this.#name(accountId, parseReference(uri).registry));
    return kept && (JSON.parse(kept.reveal()) as RegistryCredentials);
  }

  #name(accountId: string, host: string) {
    return { accountId, name: `registry/${canonical(host)}` };
  }
}

// Docker Hub goes by three names, and host names have no case.
function canonical(host: string): string {
  const name = host.toLowerCase();
  return name === 'index.docker.io' || name === 'registry-1.docker.io' ? 'docker.io' : name;
}

/** `PUT` and `DELETE /_platform/registry-credentials/{host}`: what a private registry is to be asked with. Never given back. */
export function registryCredentialsRoutes(store: RegistryCredentialsStore, guard: AdminGuard): FastifyPluginAsync {
  const resource = (host: string) => (accountId: string) => `arn:aws:agentplatform::${accountId}:registry/${host}`;
  return async (app) => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (_request, _payload, done) => done(null));
    app.put<{ Params: { host: string } }>('/_platform/registry-credentials/:host', async (request, reply) => {
      const host = hostName(request.params.host);
      const { accountId, body } = await guard(request, 'agentplatform:PutRegistryCredentials', resource(host));
      await store.put(accountId, host, readCredentials(body));
      return reply.code(204).send();
    });
    app.delete<{ Params: { host: string } }>('/_platform/registry-credentials/:host', async (request, reply) => {
      const host = hostName(request.params.host);
      const { accountId } = await guard(request, 'agentplatform:DeleteRegistryCredentials', resource(host));
      if (!(await store.delete(accountId, host)))
        throw errors.resourceNotFound(`No credentials are stored for ${host}.`);
      return reply.code(204).send();
    });
  };
}

function hostName(text: string): string {
  if (!/^[a-zA-Z0-9.-]{1,253}(:\d{1,5})?$/.test(text))
    throw errors.invalidField('host', 'must be the name of a registry such as ghcr.io or localhost:5000');
  return text;
}

function readCredentials(body: Buffer): RegistryCredentials {
  const { username, password } = readMembers(body, '{"username": …, "password": …}');
  if (typeof username !== 'string' || username === '') throw errors.invalidField('username', 'must be a text');
  if (typeof password !== 'string' || password === '') throw errors.invalidField('password', 'must be a text');
  return { username, password };
}
