import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Logger } from 'pino';
import { directoryEntries, type ImagesRoom, type LayerEntry, writeImage } from '../../kernel/images/index.ts';
import { SandboxError, type SandboxProvider } from '../../kernel/sandbox/sandbox.ts';
import { PackageTrees, type Variant } from './package-trees.ts';

export interface InterpreterImagesDeps {
  images: Pick<ImagesRoom, 'store' | 'bases' | 'layer'>;
  provider: Pick<SandboxProvider, 'stage'>;
  cacheDir: string;
  sourceDir: string;
  /** Where the digests of finished images are kept. */
  recordDir: string;
  /** The best image to make; `slim` never makes the full one. */
  variant: Variant;
  log: Logger;
}

/** Versions that all the packages are made for, best first; the machine's own goes before them. */
const PYTHONS = ['3.12', '3.13', '3.11', '3.14'];
const AGENT = { uid: 10001, gid: 10001 };
const ROOT = { uid: 0, gid: 0 };
/** What no session needs of an installed package: many small files make an image slow to write and to unpack. */
const PYTHON_LEFT_OUT = /(^|\/)(tests?\/|debugpy(\/|$))|(^|\/)bin\/(?!deno$)|\.(pyi|c|h|pxd|pyx)$/;
const NODE_LEFT_OUT = /\.(d\.[cm]?ts|map|md|flow|markdown)$|(^|\/)\.bin\//;

export interface InterpreterImage {
  variant: Variant;
  digest: string;
}

/**
 * The images of code-interpreter sessions, assembled from the machine's own Python and Node, pip and npm: no registry of images
 * needed. The slim one is made first; the full one behind it, and taken as soon as it is there.
 */
export class InterpreterImages {
  readonly #deps: InterpreterImagesDeps;
  readonly #trees: PackageTrees;
  readonly #stop = new AbortController();
  readonly #made = new Map<Variant, InterpreterImage>();
  readonly #making = new Map<Variant, Promise<InterpreterImage>>();

  constructor(deps: InterpreterImagesDeps) {
    this.#deps = deps;
    this.#trees = new PackageTrees(deps);
  }

  /** The best image that is ready; waits for the slim one when there is none yet. Rejects with `SandboxError`. */
  async current(): Promise<InterpreterImage> {
    const wanted = this.#deps.variant;
    const best = this.#made.get(wanted);
    if (best) return best;
    const recorded = await this.#recorded(wanted);
    if (recorded) return recorded;
    if (wanted === 'full') {
      // Never rejects here: the slim image serves meanwhile, and the next session tries again.
      this.#make('full').catch((error: unknown) =>
        this.#deps.log.warn({ err: error }, 'the full code-interpreter image could not be made; the slim one serves'),
      );
    }
    return this.#made.get('slim') ?? this.#make('slim');
  }

  /** Waits until the configured image is made. */
  async best(): Promise<InterpreterImage> {
    return (await this.#recorded(this.#deps.variant)) ?? this.#make(this.#deps.variant);
  }

  /** Kept when unused images are removed: sessions that survived a restart may still run on them. */
  async digests(): Promise<string[]> {
    const recorded = await Promise.all([this.#read('slim'), this.#read('full')]);
    return recorded.flatMap((record) => record?.digest ?? []);
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the server is stopping'));
    await Promise.allSettled(this.#making.values());
  }

  #make(variant: Variant): Promise<InterpreterImage> {
    const under = this.#making.get(variant);
    if (under) return under;
    const making = this.#assemble(variant).finally(() => this.#making.delete(variant));
    this.#making.set(variant, making);
    return making;
  }

  async #assemble(variant: Variant): Promise<InterpreterImage> {
    const { images, provider, log } = this.#deps;
    const signal = this.#stop.signal;
    const version = await this.#pythonVersion();
    const [python, npm, host] = await Promise.all([
      this.#trees.python(variant, version, signal),
      this.#trees.npm(signal),
      this.#trees.host(version, signal),
    ]);
    const pythonBase = await images.bases.ensure(`python:${version}`, signal);
    const nodeBase = await images.bases.ensure(`node:${process.versions.node.split('.')[0]}`, signal);
    const key = [pythonBase.digest, nodeBase.digest, basename(python), basename(npm), basename(host)].join(' ');
    const known = await this.#read(variant);
    if (known?.key === key && (await this.#whole(known.digest))) return this.#keep(variant, known.digest, key);

    log.info({ variant }, 'making the code-interpreter image');
    const base = await images.store.readImage(pythonBase.digest);
    const node = await images.store.readImage(nodeBase.digest);
    const nodeLayer = node.manifest.layers.at(-1);
    if (!nodeLayer) throw new SandboxError('failed', 'The base image of Node has no layers.');
    const layers = [
      await images.layer(`packages ${basename(python)} without ${PYTHON_LEFT_OUT}`, () => packages(python), signal),
      await images.layer(`modules ${basename(npm)} without ${NODE_LEFT_OUT}`, () => modules(npm), signal),
      await images.layer(`server ${basename(host)}`, () => server(host), signal),
    ];
    const digest = await writeImage(images.store, {
      platform: base.config.platform,
      layers: [...base.manifest.layers, nodeLayer, ...layers],
      run: {
        entrypoint: ['python3', '-P', '-m', 'host'],
        cmd: [],
        env: [
          ...base.config.run.env,
          'PYTHONPATH=/opt/python:/opt/interpreter',
          'PYTHONUNBUFFERED=1',
          'MPLCONFIGDIR=/tmp/matplotlib',
          `AGENTPLATFORM_IMAGE=${variant}`,
        ],
        workingDir: '/workspace',
        user: `${AGENT.uid}:${AGENT.gid}`,
      },
    });
    await provider.stage({ digest, common: true }, signal);
    log.info({ variant, digest }, 'the code-interpreter image is ready');
    return this.#keep(variant, digest, key);
  }

  async #pythonVersion(): Promise<string> {
    const available = await this.#deps.images.bases.available();
    const own = await this.#trees.machinePython();
    const preferred = own !== undefined && PYTHONS.includes(own) ? [own, ...PYTHONS] : PYTHONS;
    const version = preferred.find((candidate) => available.includes(`python:${candidate}`));
    if (version !== undefined) return version;
    throw new SandboxError(
      'unavailable',
      `The code interpreter needs Python ${PYTHONS.toSorted().join(', ')} on this machine; install it, e.g. apt-get install -y python3 python3-pip.`,
    );
  }

  async #keep(variant: Variant, digest: string, key: string): Promise<InterpreterImage> {
    const image = { variant, digest };
    await mkdir(this.#deps.recordDir, { recursive: true, mode: 0o700 });
    const file = this.#file(variant);
    await writeFile(`${file}.part`, JSON.stringify({ key, digest }), { flush: true });
    await rename(`${file}.part`, file);
    this.#made.set(variant, image);
    return image;
  }

  /** An image that an earlier run made of the same things; looked up once per run through `#assemble`, which is quick then. */
  async #recorded(variant: Variant): Promise<InterpreterImage | undefined> {
    if (this.#made.has(variant)) return this.#made.get(variant);
    const record = await this.#read(variant);
    return record && (await this.#whole(record.digest)) ? this.#make(variant) : undefined;
  }

  async #whole(digest: string): Promise<boolean> {
    return this.#deps.images.store.readImage(digest).then(
      () => true,
      () => false,
    );
  }

  #file(variant: Variant): string {
    return join(this.#deps.recordDir, `${variant}.json`);
  }

  async #read(variant: Variant): Promise<{ key: string; digest: string } | undefined> {
    const text = await readFile(this.#file(variant), 'utf8').catch(() => undefined);
    if (text === undefined) return undefined;
    const { key, digest } = JSON.parse(text) as { key?: unknown; digest?: unknown };
    return typeof key === 'string' && typeof digest === 'string' ? { key, digest } : undefined;
  }
}

function packages(tree: string): Promise<LayerEntry[]> {
  return directoryEntries(tree, { target: 'opt/python', owner: ROOT, include: (path) => !PYTHON_LEFT_OUT.test(path) });
}

function modules(tree: string): Promise<LayerEntry[]> {
  const include = (path: string): boolean => !NODE_LEFT_OUT.test(path);
  return directoryEntries(join(tree, 'node_modules'), { target: 'node_modules', owner: ROOT, include });
}

async function server(tree: string): Promise<LayerEntry[]> {
  const workspace: LayerEntry = { type: 'directory', path: 'workspace', mode: 0o755, ...AGENT };
  return [...(await directoryEntries(tree, { target: 'opt/interpreter/host', owner: ROOT })), workspace];
}
