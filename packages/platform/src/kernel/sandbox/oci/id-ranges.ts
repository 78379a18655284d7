import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { claim } from '../network/subnets.ts';
import { SandboxError } from '../sandbox.ts';

/** Ids of one range: as many as an image may use. */
export const RANGE_IDS = 65_536;

/** Whose lines in /etc/subuid and /etc/subgid set ids aside for sandboxes. */
const OWN_NAME = 'agentplatform';

export interface IdRangeOptions {
  /** Shared by all platforms on the machine. */
  registryDir: string;
  dataDir: string;
  /** First id of the first range, rounded up to a multiple of `RANGE_IDS`, and how many ranges there are. */
  first: number;
  count: number;
  /** Texts of /etc/subuid and /etc/subgid, and of /etc/passwd and /etc/group; ranges with ids that those give to others are not used. */
  subordinate?: string;
  accounts?: string;
}

/**
 * Ranges of host ids, each for one sandbox at a time, since the kernel counts much of what it lends out by id. A claim is a file that is made
 * whole or not at all, named after the range's first id and holding the data directory's path.
 */
export class IdRanges {
  readonly #options: IdRangeOptions;
  readonly #foreign: readonly [first: number, last: number][];
  /** Taken by this process. */
  readonly #held = new Set<number>();
  #next: number;

  private constructor(options: IdRangeOptions, foreign: readonly [number, number][]) {
    this.#options = options;
    this.#foreign = foreign;
    this.#next = Math.floor(Math.random() * options.count);
  }

  static async open(options: Omit<IdRangeOptions, 'subordinate' | 'accounts'>): Promise<IdRanges> {
    const read = (paths: string[]): Promise<string> =>
      Promise.all(paths.map((path) => readFile(path, 'utf8').catch(() => ''))).then((texts) => texts.join('\n'));
    const [subordinate, accounts] = await Promise.all([
      read(['/etc/subuid', '/etc/subgid']),
      read(['/etc/passwd', '/etc/group']),
    ]);
    return IdRanges.with({ ...options, subordinate, accounts });
  }

  static async with(options: IdRangeOptions): Promise<IdRanges> {
    await mkdir(options.registryDir, { recursive: true, mode: 0o700 });
    const first = Math.ceil(options.first / RANGE_IDS) * RANGE_IDS;
    // Platforms with other bounds cut the same ranges, so that no two overlap but whole. The last ids of all are no users.
    const count = Math.min(options.count, (2 ** 32 - RANGE_IDS - first) / RANGE_IDS);
    return new IdRanges({ ...options, first, count }, foreignIds(options));
  }

  /** What root of every sandbox is where it may write to the host's own files: an id of the host that nothing runs as. */
  get rootId(): number {
    return this.#options.first;
  }

  /** The first id of a free range. Rejects with SandboxError `capacity` when no range is free. */
  async take(): Promise<number> {
    const { registryDir, dataDir, first, count } = this.#options;
    const claimed = new Set(await readdir(registryDir));
    // The first range is nobody's: see `rootId`.
    const ranges = count - 1;
    // Others that take one meanwhile move `#next`: each goes round from where it began.
    const from = this.#next;
    for (let step = 0; step < ranges; step += 1) {
      const id = first + (1 + ((from + step) % ranges)) * RANGE_IDS;
      if (claimed.has(String(id)) || this.#held.has(id) || this.#isForeign(id)) continue;
      this.#held.add(id);
      if (await claim(join(registryDir, String(id)), dataDir)) {
        this.#next = (from + step + 1) % ranges;
        return id;
      }
      this.#held.delete(id);
    }
    throw new SandboxError(
      'capacity',
      `No range of ids is free for another sandbox: all ${ranges} from ${first} on are in use on this machine, or belong to accounts of it. Set sandbox.idRanges higher, or sandbox.firstId to where ids are free.`,
    );
  }

  /** Gives a range back, of which nothing lives any more. */
  async release(first: number): Promise<void> {
    const file = join(this.#options.registryDir, String(first));
    if ((await readFile(file, 'utf8').catch(() => undefined)) === this.#options.dataDir)
      await rm(file, { force: true });
    this.#held.delete(first);
  }

  /** Gives back what an earlier server of this data directory took and none of `owned` has. */
  async sweep(owned: ReadonlySet<number>): Promise<void> {
    for (const { first } of await claimsOf(this.#options.registryDir, this.#options.dataDir))
      if (!owned.has(first) && !this.#held.has(first)) await this.release(first);
  }

  #isForeign(id: number): boolean {
    return this.#foreign.some(([first, last]) => first < id + RANGE_IDS && last >= id);
  }
}

/** Gives back all that the platform of `dataDir` had, which is gone. */
export async function releaseRanges(registryDir: string, dataDir: string): Promise<void> {
  for (const { file } of await claimsOf(registryDir, dataDir)) await rm(file, { force: true });
}

async function claimsOf(registryDir: string, dataDir: string): Promise<{ first: number; file: string }[]> {
  const names = (await readdir(registryDir).catch(() => [])).filter((name) => /^\d+$/.test(name));
  const claims = await Promise.all(
    names.map(async (name) => {
      const file = join(registryDir, name);
      return { first: Number(name), file, owner: await readFile(file, 'utf8').catch(() => '') };
    }),
  );
  return claims.filter(({ owner }) => owner === dataDir);
}

function foreignIds({ subordinate = '', accounts = '' }: IdRangeOptions): [number, number][] {
  const rows = (text: string): string[][] => text.split('\n').map((line) => line.split(':'));
  const lent = rows(subordinate)
    .filter(([name, , count]) => name !== OWN_NAME && count !== undefined)
    .map(([, first, count]): [number, number] => [Number(first), Number(first) + Number(count) - 1]);
  const single = rows(accounts)
    .map((row) => Number(row[2] || Number.NaN))
    .map((id): [number, number] => [id, id]);
  return [...lent, ...single].filter(([first, last]) => first <= last);
}
