import { createHash } from 'node:crypto';
import { link, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DirectoryInUseError, lockDirectory } from '../../storage/index.ts';
import { isGone } from '../host/is-gone.ts';
import { SandboxError } from '../sandbox.ts';

/** 10.224.0.0/11 in blocks of 1,022 sandboxes; one block per platform on this machine. */
const FIRST = 0x0ae00000;
const BLOCK_BITS = 10;
const BLOCKS = 2048;

export interface Subnet {
  /** `10.224.4.0/22` */
  cidr: string;
  /** The host's address as seen by every sandbox: the first of the block. */
  gateway: string;
  /** Numeric first address, for deriving a number per sandbox. */
  base: number;
}

export interface SubnetOptions {
  /** Shared by all platforms on the machine. */
  registryDir: string;
  /** Text of /proc/net/route. */
  routes: string;
  /** The packet rules of this host as text. An address block that any rule names is not free. */
  rules?: string;
}

/** A block that a platform has, by the word of the file that says so. */
export interface Claim {
  dataDir: string;
  file: string;
  subnet: Subnet;
}

/**
 * Claims a block for `dataDir` that no other platform, no route and no rule of the host uses, or finds the one it has. A claim is a file
 * made with O_EXCL and holding the data directory's path; one whose directory is gone is for `collectLapsed`. Rejects with SandboxError
 * `unavailable`.
 */
export async function claimSubnet(dataDir: string, options: SubnetOptions): Promise<Subnet> {
  const { registryDir, routes, rules = '' } = options;
  await mkdir(registryDir, { recursive: true, mode: 0o700 });
  const claims = await readClaims(registryDir);
  // Wherever it is: sandboxes may have its addresses, though a block that would be tried before it is free by now.
  const own = claims.find((claim) => claim.dataDir === dataDir);
  if (own) return own.subnet;
  const taken = new Set(claims.map(({ file }) => file));
  const start = createHash('sha256').update(dataDir).digest().readUInt32BE(0) % BLOCKS;
  for (let step = 0; step < BLOCKS; step++) {
    const index = (start + step) % BLOCKS;
    const subnet = block(index);
    const file = claimFile(registryDir, index);
    if (taken.has(file) || overlapsRoute(subnet, routes) || rules.includes(`${subnet.cidr} `)) continue;
    if (await claim(file, dataDir)) return subnet;
  }
  throw new SandboxError(
    'unavailable',
    'No address range for sandboxes is free in 10.224.0.0/11: every block is claimed, routed or named by packet rules of this host.',
  );
}

/** Gives the block back. One whose data directory is gone is left to `collectLapsed`, which may be at it already. */
export async function releaseSubnet(dataDir: string, subnet: Subnet, registryDir: string): Promise<void> {
  const file = claimFile(registryDir, (subnet.base - FIRST) >>> BLOCK_BITS);
  if (await isGone(dataDir)) return;
  if ((await readFile(file, 'utf8').catch(() => undefined)) === dataDir) await rm(file, { force: true });
}

/**
 * Resolves once nobody is at work any more who may have taken `dataDir`, which has to exist by now, for gone: who begins later sees that it
 * is there. One without a claim waits for nobody, since a claim is the last thing of it to go. Looks `looks` times, every 50 ms, then
 * rejects with SandboxError `unavailable`.
 */
export async function awaitCollector(dataDir: string, registryDir: string, looks = 1200): Promise<void> {
  for (let look = 0; look < looks; look += 1) {
    if (look > 0) await sleep(50);
    if (!(await readClaims(registryDir)).some((claim) => claim.dataDir === dataDir)) return;
    try {
      (await lockDirectory(registryDir)).release();
      return;
    } catch (error) {
      if (!(error instanceof DirectoryInUseError)) throw error;
    }
  }
  throw new SandboxError(
    'unavailable',
    'Another platform on this machine is removing what platforms left whose data directory was gone, and has not ended yet. Try again.',
  );
}

/** All claims of the machine. */
export async function readClaims(registryDir: string): Promise<Claim[]> {
  const files = await readdir(registryDir).catch(() => []);
  const claims = await Promise.all(
    files.map(async (name) => {
      const index = /^block-(\d+)$/.exec(name)?.[1];
      if (index === undefined) return [];
      const file = join(registryDir, name);
      const dataDir = await readFile(file, 'utf8').catch(() => '');
      return dataDir === '' ? [] : [{ dataDir, file, subnet: block(Number(index)) }];
    }),
  );
  return claims.flat();
}

function claimFile(registryDir: string, index: number): string {
  return join(registryDir, `block-${index}`);
}

/** Makes the file that claims something of this machine for `dataDir`; false when somebody has it. */
export async function claim(file: string, dataDir: string): Promise<boolean> {
  const draft = `${file}.${process.pid}.${performance.now()}`;
  await writeFile(draft, dataDir, { mode: 0o600 });
  try {
    // A link appears whole or not at all, where a write could be read half done.
    await link(draft, file);
    return true;
  } catch {
    return false;
  } finally {
    await rm(draft, { force: true });
  }
}

function block(index: number): Subnet {
  const base = FIRST + index * 2 ** BLOCK_BITS;
  return { cidr: `${dotted(base)}/${32 - BLOCK_BITS}`, gateway: dotted(base + 1), base };
}

/** Whether a route of the host, other than the default one, leads into the block. */
function overlapsRoute({ base }: Subnet, routes: string): boolean {
  return parseRoutes(routes).some(({ first, last }) => first < base + 2 ** BLOCK_BITS && last >= base);
}

/** Interfaces that have a route to an address of the block, and of nothing around it. `routes` as in `SubnetOptions`. */
export function interfacesInto({ base }: Subnet, routes: string): Set<string> {
  const inside = parseRoutes(routes).filter(({ first, last }) => first >= base && last < base + 2 ** BLOCK_BITS);
  return new Set(inside.map(({ ifname }) => ifname));
}

function parseRoutes(routes: string): { ifname: string; first: number; last: number }[] {
  return routes
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const fields = line.trim().split(/\s+/);
      const [first, mask] = [littleEndian(fields[1]), littleEndian(fields[7])];
      if (first === undefined || mask === undefined || mask === 0) return [];
      return [{ ifname: fields[0] ?? '', first, last: first + (0xffffffff - mask) }];
    });
}

function littleEndian(hex: string | undefined): number | undefined {
  if (!hex || !/^[0-9A-F]{8}$/i.test(hex)) return undefined;
  return Buffer.from(hex, 'hex').readUInt32LE(0);
}

/** `10.224.0.1` of 0x0ae00001. */
export function dotted(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join('.');
}
