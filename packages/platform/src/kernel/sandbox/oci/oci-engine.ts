import { randomBytes } from 'node:crypto';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Clock } from '../../clock.ts';
import type { RunCommand } from '../../processes/index.ts';
import { endLeftHelpers } from '../exec/exec.ts';
import { type CgroupLayout, readCgroupLayout } from '../host/cgroups.ts';
import { type Instance, idRegistryPlace, openInstance, registryPlace } from '../host/instance.ts';
import { collectLapsed } from '../host/lapsed.ts';
import type { HostStage } from '../host-stage.ts';
import { SandboxNetwork } from '../network/network.ts';
import { Nft } from '../network/nft.ts';
import type { Nameserver } from '../network/nft-rules.ts';
import { Owner } from '../owner/owner.ts';
import { OwnerPool } from '../owner/owner-pool.ts';
import { SandboxError } from '../sandbox.ts';
import { IdMounts, type SeenFiles } from './id-mounts.ts';
import { IdRanges, RANGE_IDS } from './id-ranges.ts';
import { RuntimeCli, type RuntimeInfo } from './runtime-cli.ts';
import { type RuntimeTraits, runtimeTraits } from './runtime-traits.ts';
import { Snapshots } from './snapshots.ts';

export interface OciProviderOptions {
  dataDir: string;
  stage: HostStage;
  clock: Clock;
  log: Logger;
  /** What sandboxes see of the host beside the data directory. */
  seen?: readonly SeenFiles[];
  /** Runtime command: `runc` by default; another that shares its command line. */
  runtime?: string;
  nft?: string;
  cniDir?: string;
  nameserver?: Nameserver;
  /** Port of 127.0.0.1 that sandboxes reach the sandbox endpoint by; asked when the first one is made. */
  sandboxEndpoint?: () => number | undefined;
  /** Network namespaces kept ready (default 2). */
  poolSize?: number;
  /** First id of the host for sandboxes, a multiple of 65,536, and how many ranges of as many there are from there on. */
  firstId?: number;
  idRanges?: number;
  /** Creates at work at once (default 8) and waiting (default 256). */
  creates?: { running: number; waiting: number };
  /** Bytes of a sandbox's log that are kept (default 4 MiB). */
  logBytes?: number;
  /** Bytes of snapshots that are kept (default none). */
  snapshotBytes?: number;
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
  // Above the ids that directories and container engines give out by default, below what systemd keeps for itself.
  firstId: 30_521 * RANGE_IDS,
  idRanges: 2048,
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
  ranges: IdRanges;
  /** An owner process as the pool makes it, except for its ids. */
  makeOwner(own: boolean): Promise<Owner>;
  /** Whether all ids of owners of the pool are their own. */
  ownIds: boolean;
  idMounts: IdMounts;
  /** Undefined where the runtime takes none, or where none are to be kept. */
  snapshots: Snapshots | undefined;
  isolation: string;
  swapLimit: boolean;
}

/** Claims names and addresses, puts the network rules in force and prepares the pool. Rejects with SandboxError; nothing is half open then. */
export async function openEngine(options: OciProviderOptions, run: RunCommand): Promise<Engine> {
  const { dataDir, clock, log, nameserver } = options;
  const {
    runtime: command,
    nft: nftCommand,
    cniDir,
    runBase,
    poolSize,
    firstId,
    idRanges,
  } = { ...OCI_DEFAULTS, ...options };
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
    sandboxEndpoint: options.sandboxEndpoint?.(),
  });
  // One that cannot be ended now keeps nobody out.
  await endLeftHelpers(instance.sandboxes).catch((error: unknown) =>
    log.error({ err: error }, 'a helper of an earlier server cannot be ended'),
  );
  const ranges = await IdRanges.open({
    registryDir: idRegistryPlace(runBase),
    dataDir: instance.dataDir,
    first: firstId,
    count: idRanges,
  });
  const idMounts = new IdMounts({ run, arch: process.arch });
  const ownIds = traits.joinsUserNamespace && (await idMounts.canMap(instance.dataDir));
  const release = async (owner: Owner): Promise<void> => {
    await network.release(attachment(owner), undefined);
    await ranges.release(owner.ids.first);
  };
  const makeOwner = async (own: boolean): Promise<Owner> => {
    const slot = `${instance.prefix}-${randomBytes(6).toString('hex')}`;
    const ids = { first: await ranges.take(), own };
    const owner = await Owner.spawn({ slot, arch: process.arch, ids, cniDir, cniConfig: network.cniConfig }).catch(
      async (error: unknown) => {
        await ranges.release(ids.first);
        throw error;
      },
    );
    try {
      await network.admit(owner.address.hostInterface);
      return owner;
    } catch (error) {
      owner.discard();
      await owner.ended;
      await release(owner).catch(() => undefined);
      throw error;
    }
  };
  const pool = new OwnerPool({
    size: poolSize,
    clock,
    release,
    onError: (error) => log.warn({ err: error }, 'a network namespace could not be prepared ahead'),
    make: () => makeOwner(ownIds),
  });
  return {
    instance,
    layout,
    network,
    runtime,
    info,
    traits,
    pool,
    ranges,
    makeOwner,
    ownIds,
    idMounts,
    snapshots: await openSnapshots(options, instance, traits),
    isolation: `container (${info.name}, ${traits.isolation})`,
    swapLimit: await countsSwap(layout),
  };
}

/** Of sandboxes in a file of their own: a disk in memory would be lost. */
async function openSnapshots(
  { snapshotBytes = 0, disk }: OciProviderOptions,
  { dataDir }: Instance,
  { snapshots }: RuntimeTraits,
): Promise<Snapshots | undefined> {
  if (snapshotBytes === 0 || !snapshots || disk === 'tmpfs') return undefined;
  return Snapshots.open(join(dataDir, 'snapshots'), snapshotBytes);
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
