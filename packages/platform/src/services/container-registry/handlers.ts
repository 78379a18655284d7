import { ServiceError } from '@agentplatform/contract';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../kernel/clock.ts';
import type { KnownCall } from '../../kernel/http/index.ts';
import {
  type Bases,
  describeBytes,
  digestOf,
  type ImageIndex,
  type ImageManifest,
  type ImageStore,
  type ImageUsage,
  isDigest,
  isRepositoryName,
  MEDIA,
  parseManifest,
} from '../../kernel/images/index.ts';
import { RegistryError } from './errors.ts';
import type { RegistryLogin } from './login.ts';
import type { RegistryRoute } from './route.ts';
import { isBase } from './route.ts';
import { progress, type Upload, type Uploads } from './uploads.ts';

/** One request, after authentication. */
export interface Exchange {
  account: string;
  login: RegistryLogin;
  query: URLSearchParams;
  request: FastifyRequest;
  reply: FastifyReply;
  hold: KnownCall['hold'];
}

const BASE_PREFIX = 'base/';
const MOST_TAGS = 1000;

/** The endpoints of the OCI distribution spec, each a method named after what it does. */
export class RegistryHandlers {
  readonly #store: ImageStore;
  readonly #bases: Bases;
  readonly #clock: Clock;
  readonly #uploads: Uploads;
  readonly #usage: ImageUsage;

  constructor(deps: { store: ImageStore; bases: Bases; usage: ImageUsage; clock: Clock }, uploads: Uploads) {
    this.#store = deps.store;
    this.#bases = deps.bases;
    this.#clock = deps.clock;
    this.#uploads = uploads;
    this.#usage = deps.usage;
  }

  async handle(route: RegistryRoute, exchange: Exchange): Promise<FastifyReply> {
    const { method } = exchange.request;
    const reads = method === 'GET' || method === 'HEAD';
    if (route.kind === 'version' && reads) return exchange.reply.type('application/json').send('{}');
    if (route.kind === 'version') throw unsupported();
    if (!reads && route.name.startsWith(BASE_PREFIX))
      throw new RegistryError('DENIED', 'the base images are made by the platform and cannot be written');
    switch (route.kind) {
      case 'manifest':
        if (reads) return this.#getManifest(route, exchange);
        if (method === 'PUT') return this.#putManifest(route, exchange);
        if (method === 'DELETE') return this.#deleteManifest(route, exchange);
        throw unsupported();
      case 'blob':
        if (reads) return this.#getBlob(route, exchange);
        throw unsupported();
      case 'uploads':
        if (method === 'POST') return this.#beginUpload(route.name, exchange);
        throw unsupported();
      case 'upload':
        return this.#continueUpload(route, exchange);
      case 'tags':
        if (method === 'GET') return this.#listTags(route.name, exchange);
        throw unsupported();
    }
  }

  async #getManifest(
    route: Extract<RegistryRoute, { kind: 'manifest' }>,
    { account, request, reply }: Exchange,
  ): Promise<FastifyReply> {
    const found = route.name.startsWith(BASE_PREFIX)
      ? await this.#baseManifest(route)
      : await this.#ownManifest(account, route);
    if (!found) throw new RegistryError('MANIFEST_UNKNOWN', `${route.name} has no such image`);
    const bytes = await this.#store.blobs.readBytes(found.digest, this.#store.limits.manifestBytes);
    reply.type(found.mediaType).header('docker-content-digest', found.digest).header('content-length', bytes.length);
    return request.method === 'HEAD' ? reply.send() : reply.send(bytes);
  }

  async #ownManifest(
    account: string,
    route: Extract<RegistryRoute, { kind: 'manifest' }>,
  ): Promise<{ digest: string; mediaType: string } | undefined> {
    const { repositories } = this.#store;
    const digest = 'digest' in route ? route.digest : await repositories.tag(account, route.name, route.tag);
    const mediaType = digest && (await repositories.manifestType(account, route.name, digest));
    return digest && mediaType ? { digest, mediaType } : undefined;
  }

  async #baseManifest(
    route: Extract<RegistryRoute, { kind: 'manifest' }>,
  ): Promise<{ digest: string; mediaType: string } | undefined> {
    if ('tag' in route) {
      const { digest } = await this.#bases.ensure(`${route.name.slice(BASE_PREFIX.length)}:${route.tag}`);
      return { digest, mediaType: MEDIA.ociManifest };
    }
    return (await this.#bases.digests()).includes(route.digest)
      ? { digest: route.digest, mediaType: MEDIA.ociManifest }
      : undefined;
  }

  async #putManifest(
    route: Extract<RegistryRoute, { kind: 'manifest' }>,
    { account, request, reply, hold }: Exchange,
  ): Promise<FastifyReply> {
    const bytes = await this.#readBody(request, this.#store.limits.manifestBytes, hold);
    const manifest = parseManifest(bytes, request.headers['content-type']);
    const digest = digestOf(bytes);
    if ('digest' in route && route.digest !== digest)
      throw new RegistryError('DIGEST_INVALID', `the content is ${digest}, not ${route.digest}`);
    await this.#checkParts(account, route.name, manifest);
    await this.#usage.take(account, { bytes: bytes.length, parts: 'tag' in route ? 2 : 1 });
    await this.#store.blobs.putBytes(bytes);
    await this.#store.blobs.touch(digest, this.#clock.now());
    await this.#store.repositories.linkManifest(account, route.name, digest, manifest.mediaType);
    if ('tag' in route) await this.#store.repositories.setTag(account, route.name, route.tag, digest);
    return reply
      .code(201)
      .header('location', `/v2/${route.name}/manifests/${digest}`)
      .header('docker-content-digest', digest)
      .send();
  }

  async #checkParts(account: string, name: string, manifest: ImageManifest | ImageIndex): Promise<void> {
    const unknown = (digest: string): RegistryError =>
      new RegistryError('MANIFEST_BLOB_UNKNOWN', `${digest} was not pushed to ${name} whole`);
    if (manifest.kind === 'index') {
      for (const { digest } of manifest.manifests) {
        if ((await this.#store.repositories.manifestType(account, name, digest)) === undefined) throw unknown(digest);
      }
      return;
    }
    const parts = [manifest.config, ...manifest.layers];
    const bytes = parts.reduce((sum, part) => sum + part.size, 0);
    if (bytes > this.#store.limits.imageBytes) {
      throw new RegistryError(
        'SIZE_INVALID',
        `the image has ${describeBytes(bytes)}; an image may have ${describeBytes(this.#store.limits.imageBytes)}`,
      );
    }
    for (const { digest, size } of parts) {
      if (
        !(await this.#store.repositories.hasBlob(account, name, digest)) ||
        !(await this.#store.blobs.has(digest, size))
      )
        throw unknown(digest);
    }
  }

  async #deleteManifest(
    route: Extract<RegistryRoute, { kind: 'manifest' }>,
    { account, reply }: Exchange,
  ): Promise<FastifyReply> {
    const { repositories } = this.#store;
    const removed =
      'digest' in route
        ? await repositories.removeManifest(account, route.name, route.digest)
        : await repositories.removeTag(account, route.name, route.tag);
    if (!removed) throw new RegistryError('MANIFEST_UNKNOWN', `${route.name} has no such image`);
    return reply.code(202).send();
  }

  async #getBlob(
    route: Extract<RegistryRoute, { kind: 'blob' }>,
    { account, request, reply }: Exchange,
  ): Promise<FastifyReply> {
    const { digest, name } = route;
    const visible = name.startsWith(BASE_PREFIX)
      ? await this.#isBaseBlob(digest)
      : await this.#store.repositories.hasBlob(account, name, digest);
    const size = visible ? await this.#store.blobs.size(digest) : undefined;
    if (size === undefined) throw new RegistryError('BLOB_UNKNOWN', `${name} has no such blob`);
    // A client that is told it is there will not send it again.
    await this.#store.blobs.touch(digest, this.#clock.now());
    reply
      .type('application/octet-stream')
      .header('docker-content-digest', digest)
      .header('accept-ranges', 'bytes')
      .header('etag', `"${digest}"`);
    const range = parseRange(request.headers.range, size);
    const length = range ? range.end - range.start + 1 : size;
    reply.header('content-length', length);
    if (range) reply.code(206).header('content-range', `bytes ${range.start}-${range.end}/${size}`);
    return request.method === 'HEAD' ? reply.send() : reply.send(this.#store.blobs.read(digest, range));
  }

  async #beginUpload(name: string, exchange: Exchange): Promise<FastifyReply> {
    const { account, login, query, reply, request } = exchange;
    const mount = query.get('mount');
    if (mount !== null && isDigest(mount) && (await this.#mount(exchange, name, mount)))
      return created(reply, name, mount);
    const digest = query.get('digest');
    if (digest !== null && !isDigest(digest))
      throw new RegistryError('DIGEST_INVALID', 'digest is not a sha256 digest');
    const upload = await this.#uploads.begin({ account, principal: login.principal, name });
    if (digest === null) return reply.code(202).headers(progress(upload)).header('content-length', 0).send();
    return this.#finish(upload, digest, exchange, request);
  }

  async #continueUpload(route: Extract<RegistryRoute, { kind: 'upload' }>, exchange: Exchange): Promise<FastifyReply> {
    const { account, login, query, reply, request } = exchange;
    const upload = this.#uploads.get({ account, principal: login.principal, name: route.name, id: route.id });
    switch (request.method) {
      case 'GET':
      case 'HEAD':
        return reply.code(204).headers(progress(upload)).send();
      case 'PATCH':
        await this.#append(upload, request);
        return reply.code(202).headers(progress(upload)).header('content-length', 0).send();
      case 'PUT': {
        const digest = query.get('digest') ?? '';
        if (!isDigest(digest)) throw new RegistryError('DIGEST_INVALID', 'digest is missing or not a sha256 digest');
        return this.#finish(upload, digest, exchange, request);
      }
      case 'DELETE':
        await this.#uploads.cancel(upload);
        return reply.code(204).send();
      default:
        throw unsupported();
    }
  }

  async #finish(upload: Upload, digest: string, { reply }: Exchange, request: FastifyRequest): Promise<FastifyReply> {
    await this.#append(upload, request);
    await this.#uploads.finish(upload, digest);
    return created(reply, upload.name, digest);
  }

  async #append(upload: Upload, request: FastifyRequest): Promise<void> {
    const range = request.headers['content-range'];
    const match = range === undefined ? undefined : /^(?:bytes )?(\d{1,15})-(\d{1,15})(?:\/.*)?$/.exec(range);
    if (match === null)
      throw new RegistryError('RANGE_INVALID', 'Content-Range must be <first>-<last>', { headers: progress(upload) });
    await this.#uploads.append(upload, request.raw, match ? Number(match[1]) : undefined);
    if (match && upload.size !== Number(match[2]) + 1) {
      throw new RegistryError('SIZE_INVALID', 'the part is not as long as its Content-Range says', {
        status: 400,
        headers: progress(upload),
      });
    }
  }

  /** Whether the blob is now in repository `name`: it was, or is in the one it is to be taken from, which the caller may read. */
  async #mount({ account, login, query }: Exchange, name: string, digest: string): Promise<boolean> {
    const from = query.get('from') ?? name;
    if (!(await this.#maySee(account, login, from, digest)) || !(await this.#store.blobs.has(digest))) return false;
    await this.#store.blobs.touch(digest, this.#clock.now());
    if (await this.#store.repositories.hasBlob(account, name, digest)) return true;
    await this.#usage.take(account, { bytes: 0, parts: 1 });
    await this.#store.repositories.linkBlob(account, name, digest);
    return true;
  }

  async #maySee(account: string, login: RegistryLogin, name: string, digest: string): Promise<boolean> {
    if (isBase(name)) return this.#isBaseBlob(digest);
    // What may not be read is not there: the client sends the blob instead.
    if (!isRepositoryName(name) || !mayPull(login, name)) return false;
    return this.#store.repositories.hasBlob(account, name, digest);
  }

  async #isBaseBlob(digest: string): Promise<boolean> {
    for (const base of await this.#bases.digests()) {
      const image = await this.#store.readImage(base).catch(() => undefined);
      if (image && [image.manifest.config, ...image.manifest.layers].some((part) => part.digest === digest))
        return true;
    }
    return false;
  }

  async #listTags(name: string, { account, query, reply }: Exchange): Promise<FastifyReply> {
    const tags = name.startsWith(BASE_PREFIX)
      ? await this.#baseTags(name)
      : await this.#store.repositories.tags(account, name);
    if (tags === undefined || (tags.length === 0 && name.startsWith(BASE_PREFIX)))
      throw new RegistryError('NAME_UNKNOWN', `nothing was pushed as ${name}`);
    const wanted = Number(query.get('n') ?? MOST_TAGS);
    const most = Number.isInteger(wanted) && wanted >= 0 ? Math.min(wanted, MOST_TAGS) : MOST_TAGS;
    const last = query.get('last');
    const rest = last === null ? tags : tags.filter((tag) => tag > last);
    const page = rest.slice(0, most);
    const end = page.at(-1);
    if (end !== undefined && page.length < rest.length)
      reply.header('link', `</v2/${name}/tags/list?n=${most}&last=${encodeURIComponent(end)}>; rel="next"`);
    return reply.type('application/json').send(JSON.stringify({ name, tags: page }));
  }

  async #baseTags(name: string): Promise<string[]> {
    const prefix = `${name.slice(BASE_PREFIX.length)}:`;
    return (await this.#bases.available())
      .filter((base) => base.startsWith(prefix))
      .map((base) => base.slice(prefix.length));
  }

  async #readBody(request: FastifyRequest, maxBytes: number, hold: KnownCall['hold']): Promise<Buffer> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of request.raw) {
      size += chunk.length;
      if (size > maxBytes)
        throw new RegistryError('MANIFEST_INVALID', `a manifest may have ${describeBytes(maxBytes)}`, { status: 413 });
      hold(chunk.length);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }
}

function mayPull(login: RegistryLogin, repository: string): boolean {
  try {
    login.require('PullImage', repository);
    return true;
  } catch (error) {
    if (error instanceof ServiceError && error.status === 403) return false;
    throw error;
  }
}

function created(reply: FastifyReply, name: string, digest: string): FastifyReply {
  return reply
    .code(201)
    .header('location', `/v2/${name}/blobs/${digest}`)
    .header('docker-content-digest', digest)
    .send();
}

/** A single byte range (RFC 9110 section 14); anything else is answered with the whole. Throws `RANGE_INVALID`. */
export function parseRange(header: string | undefined, size: number): { start: number; end: number } | undefined {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? '');
  if (!match || (match[1] === '' && match[2] === '')) return undefined;
  const suffix = match[1] === '';
  const start = suffix ? Math.max(0, size - Number(match[2])) : Number(match[1]);
  const end = suffix || match[2] === '' ? size - 1 : Math.min(Number(match[2]), size - 1);
  // Backwards is not a range at all; past the end is one that cannot be met.
  if (!suffix && match[2] !== '' && Number(match[2]) < start) return undefined;
  if (start > end || start >= size) {
    throw new RegistryError('RANGE_INVALID', `the blob has ${size} bytes`, {
      headers: { 'content-range': `bytes */${size}` },
    });
  }
  return { start, end };
}

function unsupported(): RegistryError {
  return new RegistryError('UNSUPPORTED', 'this registry does not do that');
}
