import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Logger } from 'pino';
import { replaceFile } from '../../kernel/durable-file.ts';
import { directoryEntries, type ImagesRoom, type LayerEntry, writeImage } from '../../kernel/images/index.ts';
import { npmTree } from '../../kernel/kept-tree.ts';
import type { Preparations } from '../../kernel/preparations.ts';
import type { SandboxProvider } from '../../kernel/sandbox/index.ts';
import { object, storedText, text } from '../../kernel/stored-shape.ts';
import { orMissing } from '../../kernel/system-error.ts';

export interface HarnessImageDeps {
  images: Pick<ImagesRoom, 'store' | 'bases' | 'layer'>;
  provider: Pick<SandboxProvider, 'stage'>;
  /** `images/harness` of this project: the loop, and what it stands on. */
  sourceDir: string;
  /** Where packages are kept; several data directories may share it. */
  cacheDir: string;
  /** Where the digest of the finished image is kept. */
  recordDir: string;
  preparations: Preparations;
  log: Logger;
}

const PREPARING = { name: 'harness', what: 'the image of harness sessions', usualSeconds: 30 };
const AGENT = { uid: 10001, gid: 10001 };
const ROOT = { uid: 0, gid: 0 };
/** What no session needs of an installed package: many small files make an image slow to write and to unpack. */
const LEFT_OUT = /\.(d\.[cm]?ts|map|md|flow|markdown|tsbuildinfo)$|(^|\/)\.bin\//;

const RECORD = object({ key: text, digest: text });

/** The image of harness sessions, assembled from the machine's own Node and npm: no registry of images needed. */
export class HarnessImage {
  readonly #deps: HarnessImageDeps;
  readonly #stop = new AbortController();
  #making: Promise<string> | undefined;

  constructor(deps: HarnessImageDeps) {
    this.#deps = deps;
  }

  /** Its digest; makes it unless it is there. Rejects with `SandboxError` where it cannot be made. */
  make(): Promise<string> {
    const { preparations, log } = this.#deps;
    this.#making ??= preparations
      .run(PREPARING, (step) => this.#write(step))
      .catch((error: unknown) => {
        // The next that asks tries again.
        this.#making = undefined;
        if (!this.#stop.signal.aborted) log.warn({ err: error }, 'the image of harness sessions cannot be made');
        throw error;
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
    const { images, provider, sourceDir, cacheDir, recordDir } = this.#deps;
    const signal = this.#stop.signal;
    const { digest: node } = await images.bases.ensure(`node:${process.versions.node.split('.')[0]}`, signal);
    const named = { name: 'npm', sourceDir: join(sourceDir, 'npm'), what: 'The image of harness sessions' };
    const packages = await npmTree(cacheDir, named, { signal, step });
    const host = join(sourceDir, 'host');
    const program = await hashOf(host);
    const key = [node, basename(packages), program].join(' ');
    const known = await this.#read();
    const made = known?.key === key && (await this.#whole(known.digest)) ? known.digest : undefined;
    if (made === undefined) step('writes the image to disk');
    const digest = made ?? (await this.#assemble(node, packages, host, program));
    if (made === undefined) step('unpacks the image');
    await provider.stage({ digest, common: true }, signal);
    await mkdir(recordDir, { recursive: true, mode: 0o700 });
    await replaceFile(this.#file, JSON.stringify({ key, digest }), `${this.#file}.part`);
    return digest;
  }

  async #assemble(node: string, packages: string, host: string, program: string): Promise<string> {
    const { images } = this.#deps;
    const signal = this.#stop.signal;
    const base = await images.store.readImage(node);
    return writeImage(images.store, {
      platform: base.config.platform,
      layers: [
        ...base.manifest.layers,
        await images.layer(`harness ${basename(packages)} without ${LEFT_OUT}`, () => modules(packages), signal),
        await images.layer(`harness host ${program}`, () => hostEntries(host), signal),
      ],
      run: {
        entrypoint: ['node', '/opt/harness/host/main.mjs'],
        cmd: [],
        env: base.config.run.env,
        workingDir: '/workspace',
        user: `${AGENT.uid}:${AGENT.gid}`,
      },
    });
  }

  get #file(): string {
    return join(this.#deps.recordDir, 'harness.json');
  }

  async #whole(digest: string): Promise<boolean> {
    return this.#deps.images.store.readImage(digest).then(
      () => true,
      () => false,
    );
  }

  async #read(): Promise<{ key: string; digest: string } | undefined> {
    const found = await orMissing(readFile(this.#file, 'utf8'));
    return found === undefined ? undefined : storedText(RECORD, found);
  }
}

/** Changes when the program inside does. */
async function hashOf(dir: string): Promise<string> {
  const hash = createHash('sha256');
  for (const name of (await readdir(dir)).sort()) hash.update(name).update(await readFile(join(dir, name)));
  return hash.digest('hex').slice(0, 16);
}

function modules(tree: string): Promise<LayerEntry[]> {
  const include = (path: string): boolean => !LEFT_OUT.test(path);
  return directoryEntries(join(tree, 'node_modules'), { target: 'opt/harness/node_modules', owner: ROOT, include });
}

async function hostEntries(dir: string): Promise<LayerEntry[]> {
  const workspace: LayerEntry = { type: 'directory', path: 'workspace', mode: 0o755, ...AGENT };
  return [...(await directoryEntries(dir, { target: 'opt/harness/host', owner: ROOT })), workspace];
}
