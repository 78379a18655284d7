import { access, constants } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { RunCommand } from '../../processes/index.ts';
import { readCgroupLayout } from '../host/cgroups.ts';
import { ownerSupports } from '../owner/owner.ts';
import type { ProbeReport } from '../sandbox.ts';
import { IdMounts, type SeenFiles, sharedIds } from './id-mounts.ts';
import { RuntimeCli } from './runtime-cli.ts';
import { runtimeTraits } from './runtime-traits.ts';
import { INIT_PROGRAM } from './sandbox-init.ts';

export interface ProbeOptions {
  runtime: string;
  nft: string;
  cniDir: string;
  disk: 'loop' | 'tmpfs';
  run: RunCommand;
  arch: NodeJS.Architecture;
  /** What sandboxes would see of the host. */
  files: readonly SeenFiles[];
}

type Missing = ProbeReport['missing'][number];

/** Looks, without changing anything, whether sandboxes with an OCI runtime can be made here, and what would have to be installed. */
export async function probeOci(options: ProbeOptions): Promise<ProbeReport> {
  const { runtime, run, arch } = options;
  const info = await new RuntimeCli({ command: runtime, root: '/run', run }).info();
  const checks = await Promise.all([
    check(process.getuid?.() === 0, 'root', 'start the platform as root, or use another provider'),
    check(ownerSupports(arch), `support for the architecture ${arch}`, 'use a machine with x86-64 or ARM64'),
    check(info !== undefined, `container runtime ${runtime}`, 'apt-get install -y runc'),
    check(
      present(...['ptp', 'host-local'].map((name) => `${options.cniDir}/${name}`)),
      'network plugins',
      'apt-get install -y containernetworking-plugins',
    ),
    check(present(INIT_PROGRAM), `init for sandboxes (${INIT_PROGRAM})`, 'apt-get install -y tini'),
    check(runs(run, [options.nft, '--version']), 'nftables', 'apt-get install -y nftables'),
    check(
      runs(run, [options.nft, 'list', 'tables']),
      'right to filter packets (CAP_NET_ADMIN, nf_tables)',
      'give the platform the capability, or start it outside of a restricted container',
    ),
    check(runs(run, ['perl', '-e', '1']), 'perl', 'apt-get install -y perl-base'),
    check(
      runs(run, ['unshare', '--mount', '--propagation', 'slave', 'true']),
      'right to make namespaces (CAP_SYS_ADMIN, unshare)',
      'start the platform outside of a restricted container; apt-get install -y util-linux',
    ),
    check(
      options.disk === 'tmpfs' || present('/dev/loop-control'),
      'loop devices',
      'modprobe loop, or set the sandbox disk to tmpfs',
    ),
    check(options.disk === 'tmpfs' || runs(run, ['mkfs.ext4', '-V']), 'mkfs.ext4', 'apt-get install -y e2fsprogs'),
    check(hasControllers(), 'control groups for memory, cpu and pids', 'mount /sys/fs/cgroup with these controllers'),
  ]);
  const missing = checks.filter((entry): entry is Missing => entry !== undefined);
  const usable = missing.length === 0;
  const shared = usable && info && runtimeTraits(info).joinsUserNamespace ? await sharedBy(options) : [];
  return {
    provider: 'oci',
    usable,
    isolation: usable && info ? `container (${info.name}, ${runtimeTraits(info).isolation})` : 'container',
    missing,
    ...(info && runtimeTraits(info).unenforced.length > 0 ? { unenforced: runtimeTraits(info).unenforced } : {}),
    ...(shared.length > 0 ? { shared } : {}),
  };
}

/** One line for each part of the host that keeps sandboxes from having ids of their own; where the data directory does, nothing else matters. */
async function sharedBy({ files, run, arch }: ProbeOptions): Promise<string[]> {
  const idMounts = new IdMounts({ run, arch });
  const shared: string[] = [];
  for (const seen of files) {
    if (seen.path !== undefined && (await canMap(idMounts, seen.path))) continue;
    shared.push(sharedIds(seen));
    if (seen.always) break;
  }
  return shared;
}

async function canMap(idMounts: IdMounts, path: string): Promise<boolean> {
  // It may not be there yet.
  for (let place = resolve(path); ; place = dirname(place)) {
    const able = await idMounts.canMap(place).catch(() => undefined);
    if (able !== undefined || place === dirname(place)) return able === true;
  }
}

async function check(holds: boolean | Promise<boolean>, what: string, remedy: string): Promise<Missing | undefined> {
  return (await holds) ? undefined : { what, remedy };
}

async function present(...paths: string[]): Promise<boolean> {
  const found = await Promise.all(
    paths.map((path) =>
      access(path, constants.R_OK).then(
        () => true,
        () => false,
      ),
    ),
  );
  return found.every(Boolean);
}

async function runs(run: RunCommand, argv: [string, ...string[]]): Promise<boolean> {
  return run(argv).then(
    (result) => result.code === 0,
    () => false,
  );
}

async function hasControllers(): Promise<boolean> {
  const layout = await readCgroupLayout().catch(() => undefined);
  if (!layout) return false;
  return layout.version === 'v2'
    ? layout.unified !== undefined
    : ['memory', 'cpu', 'pids', 'cpuacct'].every((name) => layout.controllers.has(name));
}
