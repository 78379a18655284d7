import { join } from 'node:path';
import type { StagedSpec } from '../host-stage.ts';
import type { ImageUser } from '../oci/image-user.ts';
import { MASKED_PATHS, ociProcess, READONLY_PATHS, shmBytes } from '../oci/oci-spec.ts';
import { underInit, withInit } from '../oci/sandbox-init.ts';
import { seccompProfile } from '../oci/seccomp.ts';
import type { RootEntries } from './docker-root.ts';
import { type SecretFile, withSecretFile } from './secret-file.ts';

export interface ContainerOptions {
  spec: StagedSpec;
  user: ImageUser;
  skeleton: string;
  /** Where the root file system is on the host, and what is in it. */
  root: string;
  entries: RootEntries;
  /** Host files for /etc/hosts and its kin. */
  files: { path: string; source: string }[];
  /** Part of the environment of the first process; undefined for none. */
  secrets: SecretFile | undefined;
  hostname: string;
  runtime: string | undefined;
  cgroupParent: string;
  networkName: string;
  ip: string;
  nameserver: string;
  logBytes: number;
  swapLimit: boolean;
  labels: Record<string, string>;
}

const CPU_PERIOD_US = 100_000;

/** Body of the Engine API's ContainerCreate for one sandbox: the same process, limits and filters as with an OCI runtime. */
export function containerBody(options: ContainerOptions): Record<string, unknown> {
  const { spec, user, root, entries } = options;
  const { limits } = spec;
  const first = ociProcess(spec, user);
  const [command = '', ...args] = underInit(options.secrets ? withSecretFile(first.args) : first.args, spec);
  return {
    Image: options.skeleton,
    Entrypoint: [command],
    Cmd: args,
    Env: first.env,
    WorkingDir: first.cwd,
    User: `${user.uid}:${user.gid}`,
    Hostname: options.hostname,
    Labels: options.labels,
    HostConfig: {
      ...(options.runtime === undefined ? {} : { Runtime: options.runtime }),
      Mounts: mounts(spec, root, entries, options),
      // New names directly below / would be written past the sandbox's own disk.
      ReadonlyRootfs: true,
      NetworkMode: options.networkName,
      // The engine's own resolver asks this one, from inside the sandbox's network and so under its rules.
      Dns: [options.nameserver],
      CgroupParent: options.cgroupParent,
      CgroupnsMode: 'private',
      IpcMode: 'private',
      UsernsMode: 'host',
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges', `seccomp=${JSON.stringify(seccompProfile(process.arch, spec))}`],
      MaskedPaths: MASKED_PATHS,
      ReadonlyPaths: READONLY_PATHS,
      Sysctls: { 'net.ipv4.ping_group_range': '1 0' },
      Memory: limits.memoryBytes,
      ...(limits.reservedMemoryBytes ? { MemoryReservation: limits.reservedMemoryBytes } : {}),
      ...(options.swapLimit ? { MemorySwap: limits.memoryBytes } : {}),
      PidsLimit: limits.pids,
      CpuPeriod: CPU_PERIOD_US,
      CpuQuota: Math.max(1000, Math.round(limits.cpu * CPU_PERIOD_US)),
      CpuShares: Math.max(2, Math.round(limits.cpu * 1024)),
      ShmSize: shmBytes(limits),
      Ulimits: [
        { Name: 'nofile', Soft: limits.openFiles, Hard: limits.openFiles },
        { Name: 'core', Soft: 0, Hard: 0 },
        // Counted by id, which all containers share: nobody has any, rather than one of them all.
        { Name: 'msgqueue', Soft: 0, Hard: 0 },
      ],
      LogConfig: {
        Type: 'local',
        Config: { 'max-size': `${Math.ceil(options.logBytes / 2)}`, 'max-file': '2', compress: 'false' },
      },
    },
    NetworkingConfig: {
      EndpointsConfig: { [options.networkName]: { IPAMConfig: { IPv4Address: options.ip } } },
    },
  };
}

function mounts(
  spec: StagedSpec,
  root: string,
  entries: RootEntries,
  { files, secrets }: Pick<ContainerOptions, 'files' | 'secrets'>,
): Record<string, unknown>[] {
  // With an init of ours: the engine's own would be hidden below the image's /sbin.
  const given = withInit(spec).map((mount) => bind(mount.source, mount.target, mount.readOnly, mount.propagate));
  const targets = new Set(spec.mounts.map((mount) => mount.target));
  const own = [...entries.directories, ...entries.files].filter((name) => !targets.has(`/${name}`));
  return [
    ...own.map((name) => bind(join(root, name), `/${name}`, false)),
    ...files.filter(({ path }) => !targets.has(path)).map(({ path, source }) => bind(source, path, true)),
    ...(secrets ? [bind(secrets.source, secrets.target, true)] : []),
    ...given,
  ];
}

function bind(source: string, target: string, readOnly: boolean, propagate = false): Record<string, unknown> {
  return {
    Type: 'bind',
    Source: source,
    Target: target,
    ReadOnly: readOnly,
    BindOptions: { Propagation: propagate ? 'rslave' : 'rprivate', NonRecursive: !propagate },
  };
}
