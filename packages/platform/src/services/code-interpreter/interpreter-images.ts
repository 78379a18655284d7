import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Logger } from 'pino';
import { type Clock, sleep } from '../../kernel/clock.ts';
import { directoryEntries, type ImagesRoom, type LayerEntry, writeImage } from '../../kernel/images/index.ts';
import type { Making } from '../../kernel/kept-tree.ts';
import { type Preparation, type Preparations, soFar } from '../../kernel/preparations.ts';
import { SandboxError, type SandboxProvider } from '../../kernel/sandbox/index.ts';
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
  preparations: Preparations;
  clock: Clock;
  log: Logger;
}

/** How long a session waits for the first image; with its own start, and on a busy machine, it is answered within 20 s. */
const WAIT_MS = 10_000;
/** Whoever is sent away asks again after so long. */
const ASK_AGAIN_SECONDS = 5;
/** What the full image does while the slim one is made. */
const WAITS = 'waits for the image without them';
const PREPARING = {
  slim: { name: 'code-interpreter-slim', what: 'the image of code-interpreter sessions', usualSeconds: 45 },
  full: {
    name: 'code-interpreter-full',
    what: 'the image of code-interpreter sessions with pandas, matplotlib and other libraries',
    usualSeconds: 180,
  },
};

/** Versions that all the packages are made for, best first; the machine's own goes before them. */
const PYTHONS = ['3.12', '3.13', '3.11', '3.14'];
const AGENT = { uid: 10001, gid: 10001 };
const ROOT = { uid: 0, gid: 0 };
/** What no session needs of an installed package: many small files make an image slow to write and to unpack. */
const PYTHON_LEFT_OUT = /(^|\/)(tests?\/|debugpy(\/|$)|fontpkg|noto_cjk)|(^|\/)bin\/(?!deno$)|\.(pyi|c|h|pxd|pyx)$/;
/** Packages whose fonts go where programs look for fonts. */
const FONTS = /^(fontpkg|noto_cjk)\w*(\/|$)/;
const NO_FONT = /\.(py|pyc|json)$|__pycache__/;
const NODE_LEFT_OUT = /\.(d\.[cm]?ts|map|md|flow|markdown)$|(^|\/)\.bin\//;

/** The folders of packages that an image is written from. */
interface Trees {
  version: string;
  python: string;
  npm: string;
  host: string;
  /** Of the full image, where they could be made. */
  locales: string | undefined;
}

export interface InterpreterImage {
  variant: Variant;
  digest: string;
}

/** An image under way, and what it is written from. */
interface Under {
  trees: Promise<Trees>;
  image: Promise<InterpreterImage>;
}

/** There is no image yet; one is being made. */
export class ImageUnderWay extends Error {
  readonly retryAfterSeconds = ASK_AGAIN_SECONDS;
}

/**
 * The images of code-interpreter sessions, assembled from the machine's own Python and Node, pip and npm: no registry of images
 * needed. The slim one is made first. While it is written, the packages of the full one are fetched; that one is taken as soon as it is there.
 */
export class InterpreterImages {
  readonly #deps: InterpreterImagesDeps;
  readonly #trees: PackageTrees;
  readonly #stop = new AbortController();
  readonly #made = new Map<Variant, InterpreterImage>();
  readonly #making = new Map<Variant, Under>();

  constructor(deps: InterpreterImagesDeps) {
    this.#deps = deps;
    this.#trees = new PackageTrees(deps);
  }

  /**
   * The best image that is ready. Without one it waits 10 s for the slim one and then rejects with `ImageUnderWay`, which says how far it is;
   * with `SandboxError` when none can be made.
   */
  async current(): Promise<InterpreterImage> {
    const wanted = this.#deps.variant;
    const best = (await this.#recorded(wanted)) ?? this.#made.get('slim');
    // Also once slim is there: what failed before is tried again.
    if (wanted === 'full' && best?.variant !== 'full') this.#fullBehindSlim().catch(() => undefined);
    return best ?? this.#soon(this.#make('slim').image);
  }

  /** Makes the missing images and calls `onReady` for each. Rejects with `SandboxError` if the best one cannot be made. */
  async prepare(onReady: (image: InterpreterImage) => Promise<void>): Promise<void> {
    const wanted = this.#deps.variant;
    const best = await this.#recorded(wanted);
    if (best) return onReady(best);
    const full = wanted === 'full' ? this.#fullBehindSlim() : undefined;
    full?.catch(() => undefined);
    await onReady(await this.#make('slim').image);
    if (full) await onReady(await full);
  }

  /** The hint for a session on the slim image that lacks a library; undefined if no better image will come. */
  whatIsMissing(): string | undefined {
    if (this.#deps.variant === 'slim') return undefined;
    const libraries = 'numpy, pandas, matplotlib, scipy, scikit-learn and more';
    const full = this.#deps.preparations.find(PREPARING.full.name);
    if (this.#made.has('full'))
      return `[${libraries} were not ready when this session began. They are now: start a new session to use them.]`;
    if (full?.state === 'failed')
      return `[${libraries} belong to sessions of this code interpreter, but could not be installed: ${full.step}]`;
    return `[${libraries} are being installed for new sessions, ${full ? soFar(full) : 'which has just begun'}. This session does not get them: start a new one then.]`;
  }

  /** Kept when unused images are removed: sessions that survived a restart may still run on them. */
  async digests(): Promise<string[]> {
    const recorded = await Promise.all([this.#read('slim'), this.#read('full')]);
    return recorded.flatMap((record) => record?.digest ?? []);
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the server is stopping'));
    await Promise.allSettled([...this.#making.values()].map(({ image }) => image));
  }

  async #soon(image: Promise<InterpreterImage>): Promise<InterpreterImage> {
    const { clock, preparations } = this.#deps;
    const enough = new AbortController();
    const late = sleep(clock, WAIT_MS, enough.signal).then(() => {
      throw new ImageUnderWay(explainWait(preparations.find(PREPARING.slim.name)));
    });
    try {
      return await Promise.race([image, late]);
    } finally {
      enough.abort();
      late.catch(() => undefined);
    }
  }

  /** Written one after the other: together each would take twice as long, and the first session needs the slim one. */
  #fullBehindSlim(): Promise<InterpreterImage> {
    return this.#make('full', this.#made.has('slim') ? undefined : this.#make('slim')).image;
  }

  #make(variant: Variant, first?: Under): Under {
    const under = this.#making.get(variant);
    if (under) return under;
    const { preparations, log } = this.#deps;
    const trees = Promise.withResolvers<Trees>();
    trees.promise.catch(() => undefined);
    const image = preparations
      .run(PREPARING[variant], async (step) => {
        if (first) step(WAITS);
        await first?.trees.catch(() => undefined);
        trees.resolve(this.#gather(variant, step));
        const gathered = await trees.promise;
        if (first) step(WAITS);
        await first?.image.catch(() => undefined);
        return this.#write(variant, gathered, step);
      })
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted) log.warn({ err: error, variant }, 'the code-interpreter image cannot be made');
        throw error;
      })
      .finally(() => this.#making.delete(variant));
    const making = { trees: trees.promise, image };
    this.#making.set(variant, making);
    return making;
  }

  async #gather(variant: Variant, step: (doing: string) => void): Promise<Trees> {
    const signal = this.#stop.signal;
    const version = await this.#pythonVersion();
    const making = { signal, step };
    const [python, npm, host, locales] = await Promise.all([
      this.#trees.python(variant, version, making),
      this.#trees.npm(making),
      this.#trees.host(version, signal),
      variant === 'full' ? this.#locales(making) : undefined,
    ]);
    return { version, python, npm, host, locales };
  }

  /** Without them sessions have C's alone. */
  async #locales(making: Making): Promise<string | undefined> {
    try {
      return await this.#trees.locales(making);
    } catch (error) {
      if (making.signal.aborted) throw error;
      this.#deps.log.warn(
        { err: error },
        'sessions of the code interpreter have no locales: their sources are missing',
      );
      return undefined;
    }
  }

  async #write(
    variant: Variant,
    { version, python, npm, host, locales }: Trees,
    step: (doing: string) => void,
  ): Promise<InterpreterImage> {
    const { images, provider } = this.#deps;
    const signal = this.#stop.signal;
    const pythonBase = await images.bases.ensure(`python:${version}`, signal);
    const nodeBase = await images.bases.ensure(`node:${process.versions.node.split('.')[0]}`, signal);
    const key = [
      pythonBase.digest,
      nodeBase.digest,
      basename(python),
      basename(npm),
      basename(host),
      basename(locales ?? ''),
    ].join(' ');
    const known = await this.#read(variant);
    if (known?.key === key && (await this.#whole(known.digest))) return this.#keep(variant, known.digest, key);

    step('writes the image to disk');
    const base = await images.store.readImage(pythonBase.digest);
    const node = await images.store.readImage(nodeBase.digest);
    const nodeLayer = node.manifest.layers.at(-1);
    if (!nodeLayer) throw new SandboxError('failed', 'The base image of Node has no layers.');
    const layers = [
      await images.layer(`packages ${basename(python)} without ${PYTHON_LEFT_OUT}`, () => packages(python), signal),
      await images.layer(`modules ${basename(npm)} without ${NODE_LEFT_OUT}`, () => modules(npm), signal),
      ...(variant === 'full'
        ? [await images.layer(`fonts ${basename(python)} ${FONTS} without ${NO_FONT}`, () => fonts(python), signal)]
        : []),
      ...(locales === undefined
        ? []
        : [await images.layer(`locales ${basename(locales)}`, () => localeFiles(locales), signal)]),
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
          'MATPLOTLIBRC=/opt/interpreter/host/matplotlibrc',
          `AGENTPLATFORM_IMAGE=${variant}`,
        ],
        workingDir: '/workspace',
        user: `${AGENT.uid}:${AGENT.gid}`,
      },
    });
    step('unpacks the image');
    await provider.stage({ digest, common: true }, signal);
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

  /** An image that an earlier run made of the same things; looked up once per run through `#make`, which is quick then. */
  async #recorded(variant: Variant): Promise<InterpreterImage | undefined> {
    if (this.#made.has(variant)) return this.#made.get(variant);
    const record = await this.#read(variant);
    return record && (await this.#whole(record.digest)) ? this.#make(variant).image : undefined;
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
    const { key, digest }: { key?: unknown; digest?: unknown } = Object(JSON.parse(text));
    return typeof key === 'string' && typeof digest === 'string' ? { key, digest } : undefined;
  }
}

function explainWait(slim: Preparation | undefined): string {
  const so = slim ? ` (${slim.step}, ${soFar(slim)})` : '';
  return `The image of code-interpreter sessions is being made on this machine for the first time${so}. Ask again, or wait for it with: agentcore wait`;
}

function packages(tree: string): Promise<LayerEntry[]> {
  return directoryEntries(tree, { target: 'opt/python', owner: ROOT, include: (path) => !PYTHON_LEFT_OUT.test(path) });
}

function modules(tree: string): Promise<LayerEntry[]> {
  const include = (path: string): boolean => !NODE_LEFT_OUT.test(path);
  return directoryEntries(join(tree, 'node_modules'), { target: 'node_modules', owner: ROOT, include });
}

function fonts(tree: string): Promise<LayerEntry[]> {
  const include = (path: string): boolean => FONTS.test(path) && !NO_FONT.test(path);
  return directoryEntries(tree, { target: 'usr/share/fonts/noto', owner: ROOT, include });
}

function localeFiles(tree: string): Promise<LayerEntry[]> {
  return directoryEntries(tree, { target: 'usr/lib/locale', owner: ROOT });
}

async function server(tree: string): Promise<LayerEntry[]> {
  const workspace: LayerEntry = { type: 'directory', path: 'workspace', mode: 0o755, ...AGENT };
  return [...(await directoryEntries(tree, { target: 'opt/interpreter/host', owner: ROOT })), workspace];
}
