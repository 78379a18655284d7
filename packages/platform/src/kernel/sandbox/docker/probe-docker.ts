import { access } from 'node:fs/promises';
import type { RunCommand } from '../../processes/index.ts';
import { INIT_PROGRAM } from '../oci/sandbox-init.ts';
import { ownerSupports } from '../owner/owner.ts';
import { items, property } from '../records/json-path.ts';
import type { ProbeReport } from '../sandbox.ts';
import { DockerApi } from './docker-api.ts';

export interface DockerProbeOptions {
  socketPath: string;
  /** The engine's runtime by name; undefined for its default. */
  runtime: string | undefined;
  nft: string;
  disk: 'loop' | 'tmpfs';
  run: RunCommand;
}

/** All containers have the ids of the host. */
const SHARED_BY_DAEMON =
  'what the kernel counts by id (inotify, epoll watches, pending signals, descriptors on their way, pages of pipes): a Docker daemon gives all containers the same ids; provider "oci" does not';

type Missing = ProbeReport['missing'][number];

/** Looks, without changing anything, whether sandboxes can be containers of a Docker daemon here. */
export async function probeDocker(options: DockerProbeOptions): Promise<ProbeReport> {
  const { socketPath, run, nft, disk } = options;
  const api = new DockerApi(socketPath);
  const info = await api.json('GET', '/info', { timeoutMs: 5000 }).catch(() => undefined);
  api.close();
  const missing: Missing[] = [];
  const need = (holds: boolean, what: string, remedy: string): void => {
    if (!holds) missing.push({ what, remedy });
  };
  need(process.getuid?.() === 0, 'root', 'start the platform as root, or use another provider');
  need(ownerSupports(process.arch), `support for the architecture ${process.arch}`, 'use x86-64 or ARM64');
  need(info !== undefined, `a Docker daemon at ${socketPath}`, 'apt-get install -y docker.io, and start it');
  if (info !== undefined) missing.push(...checkDaemon(info, options.runtime));
  need(await runs(run, [nft, 'list', 'tables']), 'nftables, and the right to use it', 'apt-get install -y nftables');
  need(await readable(INIT_PROGRAM), `init for sandboxes (${INIT_PROGRAM})`, 'apt-get install -y tini');
  need(disk === 'tmpfs' || (await readable('/dev/loop-control')), 'loop devices', 'modprobe loop');
  need(disk === 'tmpfs' || (await runs(run, ['mkfs.ext4', '-V'])), 'mkfs.ext4', 'apt-get install -y e2fsprogs');
  const usable = missing.length === 0;
  const root = property(info, 'DockerRootDir');
  return {
    provider: 'docker',
    usable,
    isolation: usable ? dockerIsolation(info, options.runtime) : 'container',
    missing,
    unenforced: [],
    shared: [SHARED_BY_DAEMON],
    ...(typeof root === 'string' && { keepsAt: root }),
  };
}

/** `container (Docker 28.0, runc, seccomp, own network)` */
export function dockerIsolation(info: unknown, runtime: string | undefined): string {
  const name = runtime ?? String(property(info, 'DefaultRuntime'));
  return `container (Docker ${String(property(info, 'ServerVersion')).split('+')[0]}, ${name}, seccomp, own network)`;
}

/** The features that a daemon lacks, by its answer to `GET /info`. */
export function checkDaemon(info: unknown, runtime: string | undefined): Missing[] {
  const security = items(info, 'SecurityOptions').map(String);
  const offered = Object.keys(toObject(property(info, 'Runtimes')));
  const checks: [boolean, string, string][] = [
    [property(info, 'OSType') === 'linux', 'a daemon for Linux containers', 'switch Docker to Linux containers'],
    [
      !security.some((option) => option.includes('name=rootless')),
      'a daemon that runs as root',
      'the network rules do not hold for a rootless one; start dockerd as root',
    ],
    [
      security.some((option) => option.includes('name=seccomp')),
      'a daemon that filters system calls (seccomp)',
      'use a build of Docker with seccomp',
    ],
    [property(info, 'MemoryLimit') === true, 'memory limits', 'mount the control group for memory'],
    [property(info, 'CpuCfsQuota') === true, 'processor limits', 'mount the control group for cpu'],
    [property(info, 'PidsLimit') === true, 'process limits', 'mount the control group for pids'],
    [
      runtime === undefined || offered.includes(runtime),
      `the runtime ${runtime} in Docker, which offers ${offered.join(', ')}`,
      'register it in /etc/docker/daemon.json, or choose another by sandbox.dockerRuntime',
    ],
  ];
  return checks.filter(([holds]) => !holds).map(([, what, remedy]) => ({ what, remedy }));
}

function toObject(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}

function readable(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

function runs(run: RunCommand, argv: [string, ...string[]]): Promise<boolean> {
  return run(argv).then(
    ({ code }) => code === 0,
    () => false,
  );
}
