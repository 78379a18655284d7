import { createHash } from 'node:crypto';
import { access, link, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SandboxError } from './sandbox.ts';

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
}

/**
 * Claims a block for `dataDir` that no other platform and no route of the host uses, or finds the one it has. A claim is a file
 * made with O_EXCL and holding the data directory's path; it lapses when that directory is gone. Rejects with SandboxError `unavailable`.
 */
export async function claimSubnet(dataDir: string, options: SubnetOptions): Promise<Subnet> {
  await mkdir(options.registryDir, { recursive: true, mode: 0o700 });
  const start = createHash('sha256').update(dataDir).digest().readUInt32BE(0) % BLOCKS;
  for (let step = 0; step < BLOCKS; step++) {
    const index = (start + step) % BLOCKS;
    const subnet = block(index);
    const file = claimFile(options.registryDir, index);
    const holder = await readFile(file, 'utf8').catch(() => undefined);
    if (holder === dataDir) return subnet;
    if (overlapsRoute(subnet, options.routes)) continue;
    if (holder !== undefined && !(await lapse(file, holder))) continue;
    if (await claim(file, dataDir)) return subnet;
  }
  throw new SandboxError(
    'unavailable',
    'No address range for sandboxes is free in 10.224.0.0/11: every block is claimed or routed by this host.',
  );
}

export async function releaseSubnet(dataDir: string, subnet: Subnet, registryDir: string): Promise<void> {
  const file = claimFile(registryDir, (subnet.base - FIRST) >>> BLOCK_BITS);
  if ((await readFile(file, 'utf8').catch(() => undefined)) === dataDir) await rm(file, { force: true });
}

/** All claims of the machine, each with the file that holds it. */
export async function readClaims(registryDir: string): Promise<{ dataDir: string; file: string }[]> {
  const files = (await readdir(registryDir).catch(() => [])).filter((name) => /^block-\d+$/.test(name));
  const claims = await Promise.all(
    files.map(async (file) => ({ file, dataDir: await readFile(join(registryDir, file), 'utf8').catch(() => '') })),
  );
  return claims.filter(({ dataDir }) => dataDir !== '');
}

function claimFile(registryDir: string, index: number): string {
  return join(registryDir, `block-${index}`);
}

async function claim(file: string, dataDir: string): Promise<boolean> {
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

async function lapse(file: string, holder: string): Promise<boolean> {
  if (
    await access(holder).then(
      () => true,
      () => false,
    )
  )
    return false;
  const aside = `${file}.lapsed.${process.pid}`;
  // Of several that see the lapsed claim one wins the rename; should it have moved a fresh claim instead, it puts it back.
  const moved = await rename(file, aside).then(
    () => true,
    () => false,
  );
  if (!moved) return false;
  const was = await readFile(aside, 'utf8').catch(() => undefined);
  if (was !== holder) await link(aside, file).catch(() => undefined);
  await rm(aside, { force: true });
  return was === holder;
}

function block(index: number): Subnet {
  const base = FIRST + index * 2 ** BLOCK_BITS;
  return { cidr: `${dotted(base)}/${32 - BLOCK_BITS}`, gateway: dotted(base + 1), base };
}

/** Whether a route of the host other than the default one, and other than a single sandbox's, leads into the block. */
function overlapsRoute(subnet: Subnet, routes: string): boolean {
  const end = subnet.base + 2 ** BLOCK_BITS;
  return routes
    .split('\n')
    .slice(1)
    .some((line) => {
      const fields = line.trim().split(/\s+/);
      const [destination, mask] = [littleEndian(fields[1]), littleEndian(fields[7])];
      if (destination === undefined || mask === undefined || mask === 0) return false;
      const last = destination + (0xffffffff - mask);
      return destination < end && last >= subnet.base;
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
