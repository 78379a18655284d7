import { randomBytes } from 'node:crypto';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { type CgroupLayout, readCgroupLayout } from './cgroups.ts';
import { type Instance, openInstance, registryPlace } from './instance.ts';
import { collectLapsed } from './lapsed.ts';
import { SandboxNetwork } from './network.ts';
import { Nft } from './nft.ts';
import type { Nameserver } from './nft-rules.ts';
import { Owner } from './owner.ts';
import { OwnerPool } from './owner-pool.ts';
import type { RunCommand } from './run-command.ts';
import { RuntimeCli, type RuntimeInfo } from './runtime-cli.ts';
import { type RuntimeTraits, runtimeTraits } from './runtime-traits.ts';
import { SandboxError } from './sandbox.ts';

export interface OciProviderOptions {
  dataDir: string;
  clock: Clock;
  log: Logger;
  /** Runtime command: `runc` by default; another that shares its command line. */
  runtime?: string;
  nft?: string;
  cniDir?: string;
  nameserver?: Nameserver;
  /** Port of 127.0.0.1 that sandboxes with a door reach the platform by; asked when the first one is made. */
  door?: () => number | undefined;
  /** Network namespaces kept ready (default 2). */
  poolSize?: number;
  /** Creates at work at once (default 8) and waiting (default 256). */
  creates?: { running: number; waiting: number };
  /** Bytes of a sandbox's log that are kept (default 4 MiB). */
  logBytes?: number;
  /** `loop`: an ext4 file per sandbox, apart from its memory. `tmpfs`: for hosts without loop devices; counts as its memory too. */
  disk?: 'loop' | 'tmpfs';
  run?: RunCommand;
  runBase?: string;
}

export const OCI_DEFAULTS = {
  runtime: 'runc',
  nft: 'nft',
  cniDir: '/usr/lib/cni',
  disk: 'loop',
  runBase: '/run/agentplatform',
  poolSize: 2,
} as const;

/** What exists once the provider was used for the first time. */
export interface Engine {
  instance: Instance;
  layout: CgroupLayout;
  network: SandboxNetwork;
  runtime: RuntimeCli;
  info: RuntimeInfo;
  traits: RuntimeTraits;
  pool: OwnerPool;
  isolation: string;
  swapLimit: boolean;
}

/** Hundreds of thousands of ids above the accounts of any host. */
const ROOT_UIDS = 2_000_000;

/** Claims names and addresses, puts the network rules in force and prepares the pool. Rejects with SandboxError; nothing is half open then. */
export async function openEngine(options: OciProviderOptions, run: RunCommand): Promise<Engine> {
  const { dataDir, clock, log, nameserver } = options;
  const { runtime: command, nft: nftCommand, cniDir, runBase, poolSize } = { ...OCI_DEFAULTS, ...options };
  const instance = await openInstance(dataDir, runBase);
  const layout = await readCgroupLayout();
  const info = await new RuntimeCli({ command, root: instance.runtimeRoot, run }).info();
  if (!info) {
    throw new SandboxError(
      'unavailable',
      `The container runtime ${command} does not answer. Install it with: apt-get install -y runc`,
    );
  }
  const traits = runtimeTraits(info);
  const runtime = new RuntimeCli({ command, root: instance.runtimeRoot, run, flags: traits.flags });
  const nft = new Nft(run, nftCommand);
  const registryDir = registryPlace(runBase);
  const lapsed = await collectLapsed({ runBase, registryDir, layout, nft, run, runtime: command });
  if (lapsed.length > 0)
    log.info({ dataDirs: lapsed }, 'removed the sandboxes of platforms whose data directory is gone');
  const network = await SandboxNetwork.open({
    instance,
    run,
    nft,
    cniDir,
    registryDir,
    nameserver,
    door: options.door?.(),
  });
  let serial = 0;
  const pool = new OwnerPool({
    size: poolSize,
    clock,
    release: (owner) => network.release(attachment(owner), undefined),
    onError: (error) => log.warn({ err: error }, 'a network namespace could not be prepared ahead'),
    make: async () => {
      const slot = `${instance.prefix}-${randomBytes(6).toString('hex')}`;
      const rootUid = ROOT_UIDS + (serial++ % ROOT_UIDS);
      const owner = await Owner.spawn({ slot, arch: process.arch, rootUid, cniDir, cniConfig: network.cniConfig });
      try {
        await network.admit(owner.address.hostInterface);
        return owner;
      } catch (error) {
        owner.discard();
        await owner.ended;
        await network.release(attachment(owner), undefined).catch(() => undefined);
        throw error;
      }
    },
  });
  return {
    instance,
    layout,
    network,
    runtime,
    info,
    traits,
    pool,
    isolation: `container (${info.name}, ${traits.isolation})`,
    swapLimit: await countsSwap(layout),
  };
}

export function attachment(owner: Owner): { slot: string; hostInterface: string } {
  return { slot: owner.slot, hostInterface: owner.address.hostInterface };
}

/** Kernels can be built or started without accounting for swap; asking for a limit then fails. */
async function countsSwap(layout: CgroupLayout): Promise<boolean> {
  if (layout.version === 'v2') return true;
  const memory = layout.controllers.get('memory');
  if (!memory) return false;
  return access(join(memory, 'memory.memsw.limit_in_bytes')).then(
    () => true,
    () => false,
  );
}
