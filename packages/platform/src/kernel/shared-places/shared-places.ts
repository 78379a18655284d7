import { realpath, stat } from 'node:fs/promises';
import type { Logger } from 'pino';
import type { ObjectStore } from '../objects/index.ts';
import type { RunCommand } from '../processes/index.ts';
import { SandboxError } from '../sandbox/index.ts';
import { LateMounts } from '../session-storage/index.ts';
import { type Missing, missingFor } from './missing.ts';
import { type Nested, nestedAmong, pin } from './nested-places.ts';
import { ObjectMounts } from './objects/object-mounts.ts';
import type { Place } from './places.ts';

export interface SharedPlacesOptions {
  /** By the id of the access point that callers name them by. */
  places: ReadonlyMap<string, Place>;
  region: string;
  accountId: string;
  dataDir: string;
  /** Where the places of kind `objects` are. */
  objects: ObjectStore;
  run: RunCommand;
  runBase?: string;
  /** What the machine lacks for a kind of place. */
  missing?: (kind: Place['kind']) => Missing[];
  log: Logger;
}

export interface PlaceReport {
  id: string;
  kind: Place['kind'];
  missing: Missing[];
}

/** A host that is gone must not hold up a sandbox for ever. Acknowledged writes are on the server in any case. */
const NFS_OPTIONS = 'nosuid,nodev,soft,timeo=100,retrans=3';
/** A sandbox that saw one of these would see the host. */
const NEVER = ['/', '/proc', '/sys', '/dev', '/run', '/etc', '/root', '/var', '/usr', '/boot'];

/** Nothing stands before its id but what the service puts there: by another name policies on the access point would not hold. */
const ACCESS_POINT =
  /^arn:aws:(elasticfilesystem|s3files):([^:]*):([^:]*):(?:file-system\/fs-[0-9a-f]+\/)?access-point\/(fsap-[0-9a-f]+)$/;

/** Directories, NFS exports and prefixes of the object store that the operator shares with sandboxes, known to callers by the ARN of an access point alone. */
export class SharedPlaces {
  readonly #options: SharedPlacesOptions;
  readonly #mounts: LateMounts | undefined;
  readonly #objects: ObjectMounts | undefined;
  readonly #mounting = new Map<string, Promise<string>>();
  /** Directories within other ones, held by mounts: what sandboxes make of their names changes nothing. */
  readonly #nested: ReadonlyMap<string, Nested>;
  readonly #pins: LateMounts | undefined;

  private constructor(
    options: SharedPlacesOptions,
    mounts: LateMounts | undefined,
    objects: ObjectMounts | undefined,
    { nested, pins }: { nested: ReadonlyMap<string, Nested>; pins: LateMounts | undefined },
  ) {
    this.#options = options;
    this.#mounts = mounts;
    this.#objects = objects;
    this.#nested = nested;
    this.#pins = pins;
  }

  /** To be opened before the first sandbox is made. Rejects with a sentence when a place cannot be shared on this machine. */
  static async open(options: SharedPlacesOptions): Promise<SharedPlaces> {
    const all = [...options.places];
    const directories = new Map<string, { path: string; found: string }>();
    for (const [id, place] of all)
      if (place.kind === 'directory')
        directories.set(id, { path: place.path, found: await checkDirectory(id, place.path, options.dataDir) });
    const nfs = all.some(([, place]) => place.kind === 'nfs');
    const mounts = nfs ? await LateMounts.open({ ...options, name: 'nfs' }) : undefined;
    const prefixes = new Map(all.flatMap(([id, place]) => (place.kind === 'objects' ? [[id, place]] : [])));
    const objects =
      prefixes.size > 0 ? await ObjectMounts.open({ ...options, places: prefixes, store: options.objects }) : undefined;
    const nested = await nestedAmong(directories);
    const pins = nested.size > 0 ? await LateMounts.open({ ...options, name: 'nested' }) : undefined;
    if (pins) for (const [id, one] of nested) await pin(pins, id, one);
    return new SharedPlaces(options, mounts, objects, { nested, pins });
  }

  /** The id of the access point that `arn` names, if there is a place for it here. */
  find(arn: string): string | undefined {
    const [, , region, account, id] = ACCESS_POINT.exec(arn) ?? [];
    const mine = region === this.#options.region && account === this.#options.accountId;
    return mine && id !== undefined && this.#options.places.has(id) ? id : undefined;
  }

  /** Ids that callers may name. */
  ids(): string[] {
    return [...this.#options.places.keys()];
  }

  /** Each place, and what this machine lacks for it. */
  report(): PlaceReport[] {
    return [...this.#options.places].map(([id, { kind }]) => ({ id, kind, missing: this.#missing(kind) }));
  }

  /** Why the place cannot be mounted on this machine, with what would help; undefined when nothing is known to be missing. */
  unavailable(id: string): string | undefined {
    const place = this.#options.places.get(id);
    const [first] = place ? this.#missing(place.kind) : [];
    return first && `${first.what} is missing (${first.remedy})`;
  }

  /** The directory of the host to mount into a sandbox. Rejects with SandboxError `failed` when it is not there. */
  async source(id: string): Promise<string> {
    const place = this.#options.places.get(id);
    if (!place) throw new SandboxError('refused', `There is no shared place ${id}.`);
    const unavailable = this.unavailable(id);
    if (unavailable !== undefined)
      throw new SandboxError('failed', `The shared place ${id} cannot be mounted: ${unavailable}`);
    try {
      const nested = this.#nested.get(id);
      if (nested && this.#pins) return await this.#pinned(this.#pins, id, nested);
      // Looked at anew each time: what is there may have changed since the start.
      if (place.kind === 'directory') return await checkDirectory(id, place.path, this.#options.dataDir);
      return await (place.kind === 'nfs' ? this.#nfs(id, place.source) : this.#prefix(id));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new SandboxError('failed', `The shared place ${id} cannot be mounted: ${why}`, { cause: error });
    }
  }

  async close(): Promise<void> {
    for (const name of (await this.#mounts?.names()) ?? []) await this.#mounts?.release(name).catch(() => undefined);
    await this.#mounts?.close();
    for (const id of this.#nested.keys()) await this.#pins?.release(id).catch(() => undefined);
    await this.#pins?.close();
    await this.#objects?.close();
  }

  /** The directory that was there at the start; the one of that name where that was removed. */
  async #pinned(pins: LateMounts, id: string, nested: Nested): Promise<string> {
    const path = pins.pathOf(id);
    if ((await pins.mounted()).has(id) && (await stat(path)).nlink > 0) return path;
    return this.#once(id, () => pin(pins, id, nested));
  }

  #missing(kind: Place['kind']): Missing[] {
    return (this.#options.missing ?? missingFor)(kind);
  }

  #prefix(id: string): Promise<string> {
    if (!this.#objects) throw new Error('unreachable: a place of kind objects has opened them');
    return this.#objects.source(id);
  }

  #nfs(id: string, source: string): Promise<string> {
    return this.#once(id, () => this.#mountNfs(id, source));
  }

  #once(id: string, mount: () => Promise<string>): Promise<string> {
    const under = this.#mounting.get(id);
    if (under) return under;
    const mounting = mount().finally(() => this.#mounting.delete(id));
    this.#mounting.set(id, mounting);
    return mounting;
  }

  async #mountNfs(id: string, source: string): Promise<string> {
    const mounts = this.#mounts;
    if (!mounts) throw new Error('unreachable: a place of kind nfs has made the mounts');
    if (!(await mounts.mounted()).has(id)) await mounts.mount(id, ['-t', 'nfs', '-o', NFS_OPTIONS], source);
    return mounts.pathOf(id);
  }
}

/** The directory itself, links resolved. Throws for one that is none, or in which sandboxes would find the host or the platform. */
async function checkDirectory(id: string, path: string, dataDir: string): Promise<string> {
  const found = await realpath(path).catch(() => undefined);
  if (found === undefined || !(await stat(found)).isDirectory()) throw new Error(`${path} (${id}) is not a directory`);
  const data = await realpath(dataDir);
  const overlaps = found === data || found.startsWith(`${data}/`) || data.startsWith(`${found}/`);
  if (overlaps) throw new Error(`${path} (${id}) and the platform's data directory lie one in the other`);
  if (NEVER.includes(found)) throw new Error(`${path} (${id}) belongs to the system and is not shared`);
  return found;
}
