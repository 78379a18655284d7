import { errors } from '@agentplatform/contract';
import { type RouteSet, readMembers, SIGNED } from '../../kernel/http/index.ts';
import { parseReference, type RegistryCredentials } from '../../kernel/images/index.ts';
import { Secret, type Secrets } from '../../kernel/secrets/index.ts';
import { object, type Shape, storedText, text } from '../../kernel/stored-shape.ts';

const CREDENTIALS: Shape<RegistryCredentials> = object({ username: text, password: text });

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
    return kept && storedText(CREDENTIALS, kept.reveal());
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
export function registryCredentialsRoutes(store: RegistryCredentialsStore): RouteSet {
  const common = { url: '/_platform/registry-credentials/:host', credentials: SIGNED };
  const right = (accountId: string, action: string, host: string) => ({
    action: `agentplatform:${action}`,
    resource: `arn:aws:agentplatform::${accountId}:registry/${host}`,
  });
  return {
    name: 'registry-credentials',
    routes: [
      {
        ...common,
        method: 'PUT',
        ask({ params, accountId, body }) {
          const host = hostName(params.host);
          return {
            rights: right(accountId, 'PutRegistryCredentials', host),
            answer: () => store.put(accountId, host, readCredentials(body)),
          };
        },
      },
      {
        ...common,
        method: 'DELETE',
        ask({ params, accountId }) {
          const host = hostName(params.host);
          return {
            rights: right(accountId, 'DeleteRegistryCredentials', host),
            async answer() {
              if (!(await store.delete(accountId, host)))
                throw errors.resourceNotFound(`No credentials are stored for ${host}.`);
            },
          };
        },
      },
    ],
  };
}

function hostName(text = ''): string {
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
