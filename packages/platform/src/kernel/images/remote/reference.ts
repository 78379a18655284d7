import { isDigest } from '../digest.ts';
import { ImageError } from '../images.ts';

/** An image in a registry. Exactly what is fetched: the digest when there is one, else the tag. */
export interface Reference {
  /** Host with optional port, as in the name: `docker.io`, `ghcr.io`, `127.0.0.1:5000`, `[::1]:5000`. */
  registry: string;
  /** Path inside the registry: `library/node`. */
  repository: string;
  tag?: string;
  digest?: string;
}

const NAME_PART = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*';
const REPOSITORY = new RegExp(`^${NAME_PART}(?:/${NAME_PART})*$`);
const TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
const HOST =
  /^(?:\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*)(?::(\d{1,5}))?$/;
const LONGEST_NAME = 255;

/** Whether `name` is a repository name of the OCI distribution spec, at most 255 characters. */
export function isRepositoryName(name: string): boolean {
  return name.length <= LONGEST_NAME && REPOSITORY.test(name);
}

export function isTag(tag: string): boolean {
  return TAG.test(tag);
}

/**
 * Reads `[host[:port]/]path[:tag][@sha256:…]` with Docker's defaults: no host means Docker Hub, one word there means
 * `library/word`, neither tag nor digest means `latest`. Throws `ImageError('invalid')`.
 */
export function parseReference(text: string): Reference {
  const fail = (why: string): never => {
    throw new ImageError(
      'invalid',
      `"${text.slice(0, 300)}" is not an image reference: ${why}. Expected registry/name:tag or registry/name@sha256:….`,
    );
  };
  if (text.length > 1024) return fail('it is longer than 1024 characters');
  const [named = '', digest, ...more] = text.split('@');
  if (more.length > 0 || (digest !== undefined && !isDigest(digest)))
    return fail('what follows @ is not a sha256 digest');

  const { host, rest } = splitHost(named);
  const colon = rest.lastIndexOf(':');
  const path = colon === -1 ? rest : rest.slice(0, colon);
  const tag = colon === -1 ? undefined : rest.slice(colon + 1);
  if (tag !== undefined && !isTag(tag)) return fail(`"${tag.slice(0, 140)}" is not a tag`);

  const match = HOST.exec(host);
  const port = match?.[1];
  if (!match || (port !== undefined && (Number(port) < 1 || Number(port) > 65_535)))
    return fail(`"${host}" is not a registry host`);
  const registry = host === 'index.docker.io' ? 'docker.io' : host;
  const repository = registry === 'docker.io' && !path.includes('/') ? `library/${path}` : path;
  if (!isRepositoryName(repository))
    return fail(`"${path}" is not a repository name (lower-case letters, digits and . _ - /)`);
  return {
    registry,
    repository,
    ...(tag !== undefined || digest === undefined ? { tag: tag ?? 'latest' } : {}),
    ...(digest !== undefined ? { digest } : {}),
  };
}

/** What policies call a repository of the platform's own store. */
export function repositoryArn(accountId: string, name: string): string {
  return `arn:aws:agentplatform::${accountId}:image/${name}`;
}

/** Writes a reference so that `parseReference` gives the same one back. */
export function formatReference(reference: Reference): string {
  const tag = reference.tag === undefined ? '' : `:${reference.tag}`;
  const digest = reference.digest === undefined ? '' : `@${reference.digest}`;
  return `${reference.registry}/${reference.repository}${tag}${digest}`;
}

// The first part is a host when it could not be a part of a Docker Hub name.
function splitHost(named: string): { host: string; rest: string } {
  const slash = named.indexOf('/');
  const first = slash === -1 ? '' : named.slice(0, slash);
  const isHost = /[.:]/.test(first) || first === 'localhost' || (first !== '' && first !== first.toLowerCase());
  return isHost ? { host: first, rest: named.slice(slash + 1) } : { host: 'docker.io', rest: named };
}
