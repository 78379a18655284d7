import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Clock } from '../../clock.ts';
import { replaceFile } from '../../durable-file.ts';
import { SingleFlight } from '../../single-flight.ts';
import { orMissing } from '../../system-error.ts';
import type { Platform } from '../architecture.ts';
import { writeImage } from '../code/write-image.ts';
import { isDigest } from '../digest.ts';
import type { KeyedLayers } from '../formats/keyed-layers.ts';
import { AGENT } from '../formats/layer.ts';
import { type Planned, planFile, planKey } from '../formats/planned.ts';
import { ImageError, type ResolvedImage } from '../images.ts';
import { type Descriptor, isObject } from '../manifest.ts';
import type { ImageStore } from '../store/image-store.ts';
import { findChromium, planChromium } from './base-chromium.ts';
import { planPython } from './base-python.ts';
import { CERTIFICATE_FILE, planSystem } from './base-system.ts';
import { NodeBinaries } from './node-binaries.ts';
import { findPythons, type PythonInterpreter } from './python-interpreters.ts';
import { sharedLibraries } from './shared-libraries.ts';

/** Changes whenever the same inputs would give other bytes. */
const RECIPE = '1';
const PYTHONS_KNOWN_MS = 30_000;
const PYTHON_VERSIONS = ['3.10', '3.11', '3.12', '3.13', '3.14'];

/** What happens while a base is made, for whoever waits. */
export interface BaseProgress {
  base: string;
  step: 'fetching' | 'inspecting' | 'writing' | 'ready';
  message: string;
}

export interface BasesDeps {
  store: ImageStore;
  layers: KeyedLayers;
  machine: Platform;
  /** Where fetched language runtimes are kept; among the images when absent. */
  programsDir?: string | undefined;
  clock: Clock;
  log: Logger;
  /** Directories searched for `python3.X`, first one wins. */
  pythonDirs: readonly string[];
  progress?: (event: BaseProgress) => void;
}

/**
 * Images made of this machine's own programs, `node:22`, `node:24`, `python:3.11`, `chromium:latest` …, for where no registry can be reached.
 * Each is a layer that all share (shell, tools, libraries, certificates) and one with the interpreter; made once per
 * version of what went in.
 */
export class Bases {
  readonly #deps: BasesDeps;
  readonly #dir: string;
  readonly #nodes: NodeBinaries;
  readonly #flights = new SingleFlight<ResolvedImage>();
  readonly #made = new Map<string, ResolvedImage>();
  #pythons: { at: number; found: Promise<Map<string, PythonInterpreter>> } | undefined;
  #system: Promise<Planned[]> | undefined;

  constructor(deps: BasesDeps) {
    this.#deps = deps;
    this.#dir = join(deps.store.dir, 'bases');
    this.#nodes = new NodeBinaries(deps.programsDir ?? join(deps.store.dir, 'bases', 'programs'), deps.store.temp);
  }

  /** Names of the bases that this machine can make: `node:22`, `python:3.11` … */
  async available(): Promise<string[]> {
    const pythons = [...(await this.#findPythons()).keys()];
    return [
      ...this.#nodes.majors().map((major) => `node:${major}`),
      ...pythons.map((version) => `python:${version}`),
      ...((await findChromium()) === undefined ? [] : ['chromium:latest']),
    ].sort();
  }

  /** The base image, made if it is not in the store or what it is made of has changed. Throws `runtime-unavailable`. */
  async ensure(name: string, signal?: AbortSignal): Promise<ResolvedImage> {
    const made = this.#made.get(name);
    if (made && (await this.#whole(made.digest))) return made;
    return this.#flights.run(
      name,
      async (shared) => {
        try {
          const image = await this.#make(name, shared);
          this.#made.set(name, image);
          return image;
        } catch (error) {
          // What was planned may no longer be what is there: a package was upgraded meanwhile.
          this.#system = undefined;
          throw error;
        }
      },
      signal,
    );
  }

  /** Digests of the bases as last made; a collection keeps them. */
  async digests(): Promise<string[]> {
    const records = await Promise.all(
      ((await orMissing(readdir(this.#dir))) ?? [])
        .filter((file) => /^(node|python|chromium)-[\w.]+\.json$/.test(file))
        .map((file) => this.#read(file)),
    );
    return records.flatMap((record) => record?.digest ?? []);
  }

  async #make(name: string, signal: AbortSignal): Promise<ResolvedImage> {
    const began = this.#deps.clock.monotonic();
    const [kind, version = ''] = name.split(':');
    const system = await this.#planSystem(name);
    const paths = new Set(system.map((plan) => plan.entry.path));
    let plan: Planned[] | undefined;
    if (kind === 'node') plan = await this.#planNode(name, version, paths, signal);
    if (kind === 'python') plan = await this.#planPython(version, paths);
    if (kind === 'chromium') plan = await this.#planChromium(paths);
    if (!plan)
      throw new ImageError(
        'runtime-unavailable',
        `There is no base image "${name}"; this machine can make ${(await this.available()).join(', ')}.`,
      );

    const key = await planKey([
      ...system,
      ...plan,
      { entry: { type: 'directory', path: RECIPE, mode: 0, uid: 0, gid: 0 } },
    ]);
    const file = `${name.replace(':', '-')}.json`;
    const record = await this.#read(file);
    if (record?.key === key && (await this.#whole(record.digest))) return this.#describe(name, record.digest);

    this.#tell(name, 'writing', `making the base image ${name} of this machine's own programs`);
    const layers = [await this.#layer(system, signal), await this.#layer(plan, signal)];
    const digest = await writeImage(this.#deps.store, {
      platform: { os: 'linux', architecture: this.#deps.machine.architecture },
      layers,
      run: {
        entrypoint: [],
        cmd: ['/bin/sh'],
        env: environment(),
        workingDir: '/home/agent',
        user: `${AGENT.uid}:${AGENT.gid}`,
      },
    });
    await this.#write(file, { key, digest });
    const seconds = (this.#deps.clock.monotonic() - began) / 1000;
    this.#tell(name, 'ready', `base image ${name} is ready after ${seconds.toFixed(1)} s`);
    return this.#describe(name, digest);
  }

  async #planSystem(name: string): Promise<Planned[]> {
    this.#tell(name, 'inspecting', 'looking up shell, tools and libraries of this machine');
    this.#system ??= planSystem();
    return this.#system;
  }

  async #planNode(
    name: string,
    major: string,
    system: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<Planned[] | undefined> {
    const wanted = this.#nodes.version(major);
    if (wanted === undefined) return undefined;
    this.#tell(name, 'fetching', `Node ${wanted} from this machine or the npm registry (about 50 MB, once)`);
    const { path } = await this.#nodes.get(major, signal);
    const { libraries } = await sharedLibraries([path]);
    const own = libraries.filter((library) => !system.has(library.path));
    return [
      await planFile('usr/bin/node', path, 0o755),
      ...(await Promise.all(own.map((library) => planFile(library.path, library.source, 0o755)))),
    ];
  }

  async #planPython(version: string, system: ReadonlySet<string>): Promise<Planned[]> {
    let pythons = await this.#findPythons();
    if (!pythons.has(version)) pythons = await this.#findPythons(true);
    const python = pythons.get(version);
    if (python) return planPython(python, system);
    const have =
      pythons.size === 0
        ? 'no Python at all'
        : `Python ${PYTHON_VERSIONS.filter((one) => pythons.has(one)).join(', ')}`;
    throw new ImageError(
      'runtime-unavailable',
      `Python ${version} is not on this machine, which has ${have}. Install it ("apt-get install -y python${version}", or ` +
        '"apt-get install -y python3" for the distribution\'s own version), or deploy a container image instead.',
    );
  }

  async #planChromium(system: ReadonlySet<string>): Promise<Planned[]> {
    const program = await findChromium();
    if (program !== undefined) return planChromium(program, system);
    throw new ImageError(
      'runtime-unavailable',
      'Chromium is not on this machine. Install it, e.g. apt-get install -y chromium fonts-liberation.',
    );
  }

  /** Interpreters come and go while the server runs, so what was seen counts for a while only. */
  #findPythons(again = false): Promise<Map<string, PythonInterpreter>> {
    const now = this.#deps.clock.monotonic();
    if (!this.#pythons || again || now - this.#pythons.at > PYTHONS_KNOWN_MS) {
      this.#pythons = { at: now, found: findPythons(this.#deps.pythonDirs, PYTHON_VERSIONS) };
    }
    return this.#pythons.found;
  }

  async #layer(plan: readonly Planned[], signal: AbortSignal): Promise<Descriptor> {
    return this.#deps.layers.make(await planKey(plan), () => plan.map(({ entry }) => entry), signal);
  }

  #describe(name: string, digest: string): Promise<ResolvedImage> {
    return this.#deps.store.describe(`The base image ${name}`, digest, this.#deps.machine);
  }

  async #whole(digest: string): Promise<boolean> {
    return this.#describe('', digest).then(
      () => true,
      () => false,
    );
  }

  async #read(file: string): Promise<{ key: string; digest: string } | undefined> {
    const text = await orMissing(readFile(join(this.#dir, file), 'utf8'));
    try {
      const value: unknown = JSON.parse(text ?? '');
      if (
        !isObject(value) ||
        typeof value.key !== 'string' ||
        typeof value.digest !== 'string' ||
        !isDigest(value.digest)
      )
        return undefined;
      return { key: value.key, digest: value.digest };
    } catch {
      return undefined;
    }
  }

  async #write(file: string, record: { key: string; digest: string }): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    await replaceFile(join(this.#dir, file), JSON.stringify(record), this.#deps.store.temp.next());
  }

  #tell(base: string, step: BaseProgress['step'], message: string): void {
    this.#deps.log.debug({ base, step }, message);
    this.#deps.progress?.({ base, step, message });
  }
}

function environment(): string[] {
  return [
    'PATH=/usr/local/bin:/usr/bin:/bin',
    'HOME=/home/agent',
    'LANG=C.UTF-8',
    `SSL_CERT_FILE=/${CERTIFICATE_FILE}`,
  ];
}
