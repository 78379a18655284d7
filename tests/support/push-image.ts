import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pack } from 'tar-stream';
import type { TestPlatform } from './platform-process.ts';

interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
}

interface Manifest {
  schemaVersion: 2;
  mediaType: string;
  config: Descriptor;
  layers: Descriptor[];
}

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const CONFIG = 'application/vnd.oci.image.config.v1+json';
const LAYER = 'application/vnd.oci.image.layer.v1.tar';

/** Speaks the OCI distribution API to the platform's own registry with nothing but HTTP, as a foreign client does. */
export class RegistryUser {
  readonly #endpoint: string;
  readonly #authorization: string;

  constructor(platform: TestPlatform) {
    const { accessKeyId, secretAccessKey } = platform.credentials;
    this.#endpoint = platform.ready.endpoint;
    this.#authorization = `Basic ${Buffer.from(`${accessKeyId}:${secretAccessKey}`).toString('base64')}`;
  }

  /** Pushes files as one layer on a base of the platform, or on nothing, and gives the manifest's digest. */
  async push(
    name: string,
    tag: string,
    image: { base?: string; architecture?: string; files: Record<string, string>; entrypoint: string[] },
  ): Promise<string> {
    const base = image.base === undefined ? undefined : await this.#pull(image.base);
    const tar = pack();
    for (const [path, text] of Object.entries(image.files)) tar.entry({ name: path, mode: 0o644 }, text);
    tar.finalize();
    const layer = await buffer(tar);
    const architecture = image.architecture ?? base?.config.architecture;
    const config = {
      ...base?.config,
      architecture,
      os: 'linux',
      config: { ...base?.config.config, Entrypoint: image.entrypoint, WorkingDir: '/app' },
      rootfs: { type: 'layers', diff_ids: [...(base?.config.rootfs.diff_ids ?? []), digestOf(layer)] },
      history: undefined,
    };
    for (const descriptor of base?.manifest.layers ?? [])
      await this.#mount(name, descriptor.digest, image.base?.split(':')[0] ?? '');
    const manifest: Manifest = {
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: await this.#blob(name, CONFIG, Buffer.from(JSON.stringify(config))),
      layers: [...(base?.manifest.layers ?? []), await this.#blob(name, LAYER, layer)],
    };
    const body = JSON.stringify(manifest);
    await this.#call('PUT', `${name}/manifests/${tag}`, { 'content-type': MANIFEST }, body);
    return digestOf(Buffer.from(body));
  }

  /** Pushes an image of one layer of these bytes, whatever they are, and gives the layer's digest. */
  async pushLayer(name: string, tag: string, layer: Buffer, mediaType = LAYER): Promise<string> {
    const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
    const config = {
      architecture,
      os: 'linux',
      config: { Entrypoint: ['/x'] },
      rootfs: { type: 'layers', diff_ids: [] },
    };
    const pushed = await this.#blob(name, mediaType, layer);
    const body = JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: await this.#blob(name, CONFIG, Buffer.from(JSON.stringify(config))),
      layers: [pushed],
    });
    await this.#call('PUT', `${name}/manifests/${tag}`, { 'content-type': MANIFEST }, body);
    return pushed.digest;
  }

  /** Writes an image of the registry as an OCI layout into `dir`, which is made. */
  async writeLayout(name: string, digest: string, dir: string): Promise<void> {
    const blobs = join(dir, 'blobs/sha256');
    await mkdir(blobs, { recursive: true });
    const manifest = Buffer.from(
      await (await this.#call('GET', `${name}/manifests/${digest}`, { accept: MANIFEST })).arrayBuffer(),
    );
    const { config, layers } = JSON.parse(manifest.toString()) as Manifest;
    for (const blob of [config, ...layers]) {
      const { body } = await this.#call('GET', `${name}/blobs/${blob.digest}`, {});
      if (body) await writeFile(join(blobs, blob.digest.slice('sha256:'.length)), body);
    }
    await writeFile(join(blobs, digest.slice('sha256:'.length)), manifest);
    await writeFile(join(dir, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
    const index = { schemaVersion: 2, manifests: [{ mediaType: MANIFEST, digest, size: manifest.length }] };
    await writeFile(join(dir, 'index.json'), JSON.stringify(index));
  }

  async #pull(reference: string) {
    const [name = '', tag = 'latest'] = reference.split(':');
    const manifest = (await (
      await this.#call('GET', `${name}/manifests/${tag}`, { accept: MANIFEST })
    ).json()) as Manifest;
    const config = (await (await this.#call('GET', `${name}/blobs/${manifest.config.digest}`, {})).json()) as {
      architecture: string;
      config: object;
      rootfs: { diff_ids: string[] };
    };
    return { manifest, config };
  }

  async #mount(name: string, digest: string, from: string): Promise<void> {
    await this.#call('POST', `${name}/blobs/uploads/?mount=${digest}&from=${encodeURIComponent(from)}`, {});
  }

  async #blob(name: string, mediaType: string, bytes: Buffer): Promise<Descriptor> {
    const digest = digestOf(bytes);
    const { headers } = await this.#call('POST', `${name}/blobs/uploads/`, {});
    const location = new URL(headers.get('location') ?? '', this.#endpoint);
    location.searchParams.set('digest', digest);
    await this.#fetch('PUT', location, { 'content-type': 'application/octet-stream' }, new Uint8Array(bytes));
    return { mediaType, digest, size: bytes.length };
  }

  #call(method: string, path: string, headers: Record<string, string>, body?: string): Promise<Response> {
    return this.#fetch(method, new URL(`${this.#endpoint}/v2/${path}`), headers, body);
  }

  async #fetch(
    method: string,
    url: URL,
    headers: Record<string, string>,
    body?: string | Uint8Array<ArrayBuffer>,
  ): Promise<Response> {
    const answer = await fetch(url, {
      method,
      headers: { ...headers, authorization: this.#authorization },
      body: body ?? null,
    });
    if (!answer.ok) throw new Error(`${method} ${url.pathname}: ${answer.status} ${await answer.text()}`);
    return answer;
  }
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}
