import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { type Clock, sleep } from '../../kernel/clock.ts';
import { replaceFile } from '../../kernel/durable-file.ts';
import {
  directoryEntries,
  ImageError,
  type ImagesRoom,
  type LayerEntry,
  writeImage,
} from '../../kernel/images/index.ts';
import { type Preparations, soFar } from '../../kernel/preparations.ts';
import { SandboxError, type SandboxProvider } from '../../kernel/sandbox/index.ts';
import { orMissing } from '../../kernel/system-error.ts';
import { MANAGED_POLICY } from './policies.ts';

export interface BrowserImageDeps {
  images: Pick<ImagesRoom, 'store' | 'bases' | 'layer'>;
  provider: Pick<SandboxProvider, 'stage'>;
  /** The program that runs inside. */
  sourceDir: string;
  /** Where the digest of the finished image is kept. */
  recordDir: string;
  preparations: Preparations;
  clock: Clock;
  log: Logger;
}

/** How long a session waits for the image; with its own start it is answered within 30 s. */
const WAIT_MS = 25_000;
/** Whoever is sent away asks again after so long. */
const ASK_AGAIN_SECONDS = 5;
const PREPARING = { name: 'browser', what: 'the image of browser sessions', usualSeconds: 30 };
const AGENT = { uid: 10001, gid: 10001 };
const ROOT = { uid: 0, gid: 0 };

/** There is no image yet; one is being made. */
export class ImageUnderWay extends Error {
  readonly retryAfterSeconds = ASK_AGAIN_SECONDS;
}

/** The image of browser sessions, assembled from the machine's own Chromium and Node: no registry of images needed. */
export class BrowserImage {
  readonly #deps: BrowserImageDeps;
  readonly #stop = new AbortController();
  #made: string | undefined;
  #making: Promise<string> | undefined;

  constructor(deps: BrowserImageDeps) {
    this.#deps = deps;
  }

  /** Its digest. Waits 25 s for one that is being made, and then rejects with `ImageUnderWay`; with `SandboxError` when none can be made. */
  async current(): Promise<string> {
    if (this.#made !== undefined) return this.#made;
    const { clock, preparations } = this.#deps;
    const enough = new AbortController();
    const late = sleep(clock, WAIT_MS, enough.signal).then(() => {
      const at = preparations.find(PREPARING.name);
      const so = at ? ` (${at.step}, ${soFar(at)})` : '';
      throw new ImageUnderWay(
        `The image of browser sessions is being made on this machine for the first time${so}. Ask again, or wait for it with: agentcore wait`,
      );
    });
    try {
      return await Promise.race([this.make(), late]);
    } finally {
      enough.abort();
      late.catch(() => undefined);
    }
  }

  /** Makes it, unless it is there. */
  make(): Promise<string> {
    const { preparations, log } = this.#deps;
    this.#making ??= preparations
      .run(PREPARING, (step) => this.#write(step))
      .then((digest) => {
        this.#made = digest;
        return digest;
      })
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted) log.warn({ err: error }, 'the image of browser sessions cannot be made');
        throw error;
      })
      .finally(() => {
        this.#making = undefined;
      });
    return this.#making;
  }

  /** Kept when unused images are removed: sessions that survived a restart may still run on it. */
  async digests(): Promise<string[]> {
    const record = await this.#read();
    return record ? [record.digest] : [];
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the server is stopping'));
    await this.#making?.catch(() => undefined);
  }

  async #write(step: (doing: string) => void): Promise<string> {
    const { images, provider, sourceDir, recordDir } = this.#deps;
    const signal = this.#stop.signal;
    const [chromium, node, host] = [
      await this.#base('chromium:latest'),
      await this.#base(`node:${process.versions.node.split('.')[0]}`),
      await hashOf(sourceDir),
    ];
    const key = [chromium, node, host].join(' ');
    const known = await this.#read();
    if (known?.key === key && (await this.#whole(known.digest))) {
      await provider.stage({ digest: known.digest, common: true }, signal);
      return known.digest;
    }
    step('writes the image to disk');
    const base = await images.store.readImage(chromium);
    const nodeLayer = (await images.store.readImage(node)).manifest.layers.at(-1);
    if (!nodeLayer) throw new SandboxError('failed', 'The base image of Node has no layers.');
    const own = await images.layer(`browser host ${host}`, () => hostEntries(sourceDir), signal);
    const digest = await writeImage(images.store, {
      platform: base.config.platform,
      layers: [...base.manifest.layers, nodeLayer, own],
      run: {
        entrypoint: ['node', '/opt/browser/main.mjs'],
        cmd: [],
        env: base.config.run.env,
        workingDir: '/home/agent',
        user: `${AGENT.uid}:${AGENT.gid}`,
      },
    });
    step('unpacks the image');
    await provider.stage({ digest, common: true }, signal);
    await mkdir(recordDir, { recursive: true, mode: 0o700 });
    const file = join(recordDir, 'browser.json');
    await replaceFile(file, JSON.stringify({ key, digest }), `${file}.part`);
    return digest;
  }

  async #base(name: string): Promise<string> {
    try {
      return (await this.#deps.images.bases.ensure(name, this.#stop.signal)).digest;
    } catch (error) {
      if (!(error instanceof ImageError)) throw error;
      throw new SandboxError('unavailable', `Browser sessions cannot be had here: ${error.message}`, { cause: error });
    }
  }

  async #whole(digest: string): Promise<boolean> {
    return this.#deps.images.store.readImage(digest).then(
      () => true,
      () => false,
    );
  }

  async #read(): Promise<{ key: string; digest: string } | undefined> {
    const text = await orMissing(readFile(join(this.#deps.recordDir, 'browser.json'), 'utf8'));
    if (text === undefined) return undefined;
    const { key, digest }: { key?: unknown; digest?: unknown } = Object(JSON.parse(text));
    return typeof key === 'string' && typeof digest === 'string' ? { key, digest } : undefined;
  }
}

/** Changes when the program inside, or what it finds beside it, does. */
async function hashOf(dir: string): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify(MANAGED_POLICY));
  for (const name of (await readdir(dir)).sort()) hash.update(name).update(await readFile(join(dir, name)));
  return hash.digest('hex').slice(0, 16);
}

async function hostEntries(dir: string): Promise<LayerEntry[]> {
  const policy = Buffer.from(JSON.stringify(MANAGED_POLICY));
  const folder = (path: string): LayerEntry => ({ type: 'directory', path, mode: 0o755, ...AGENT });
  return [
    ...(await directoryEntries(dir, { target: 'opt/browser', owner: ROOT })),
    ...[
      'etc/chromium',
      'etc/chromium/policies',
      'etc/chromium/policies/managed',
      'etc/chromium/policies/recommended',
    ].map(folder),
    {
      type: 'file',
      path: 'etc/chromium/policies/managed/agentplatform.json',
      mode: 0o644,
      ...AGENT,
      size: policy.length,
      async *open() {
        yield policy;
      },
    },
  ];
}
