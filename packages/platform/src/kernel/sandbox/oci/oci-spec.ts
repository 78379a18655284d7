import type { HostMount, StagedSpec } from '../host-stage.ts';
import type { HostIds } from '../owner/owner.ts';
import type { SandboxLimits } from '../sandbox.ts';
import { RANGE_IDS } from './id-ranges.ts';
import type { ImageUser } from './image-user.ts';
import { underInit, withInit } from './sandbox-init.ts';
import type { SeccompProfile } from './seccomp.ts';

/** `process` of the OCI runtime configuration; also what `exec` is given. */
export interface OciProcess {
  terminal: boolean;
  user: { uid: number; gid: number };
  args: string[];
  env: string[];
  cwd: string;
  capabilities: Record<string, string[]>;
  rlimits: { type: string; hard: number; soft: number }[];
  noNewPrivileges: boolean;
}

/** A bundle's config.json; only its process is of interest to anyone but the runtime. */
export interface OciConfig {
  process: OciProcess;
  [part: string]: unknown;
}

export interface OciConfigInput {
  spec: StagedSpec;
  user: ImageUser;
  hostname: string;
  cgroupsPath: string;
  /** Where the owner mounts the root file system, in its own mount namespace. */
  rootPath: string;
  /** Undefined for a runtime that makes its own. */
  userNamespace: string | undefined;
  networkNamespace: string;
  ids: HostIds;
  /** runc before 1.2 wants the mappings of a joined user namespace repeated; later ones refuse that. */
  repeatMappings: boolean;
  seccomp: SeccompProfile;
  swapLimit: boolean;
  /** Threads and memory of the runtime itself that count as the sandbox's. */
  own: { threads: number; memoryBytes: number };
}

const CAPABILITY_SETS = ['bounding', 'effective', 'inheritable', 'permitted', 'ambient'];
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const CPU_PERIOD_US = 100_000;
const MIB = 1024 * 1024;

/** Answers nothing useful to a sandbox and has leaked before; the usual list of container engines. */
export const MASKED_PATHS = [
  '/proc/acpi',
  '/proc/asound',
  '/proc/interrupts',
  '/proc/kcore',
  '/proc/keys',
  '/proc/kmsg',
  '/proc/latency_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/vmcore',
  '/proc/config.gz',
  '/proc/cmdline',
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
  '/sys/devices/virtual/dmi',
  // Each loop device names its backing file of the host here.
  '/sys/block',
  '/sys/class/block',
  '/sys/dev/block',
  '/sys/devices/virtual/block',
  '/sys/fs/btrfs',
  '/sys/fs/ext4',
  '/sys/fs/xfs',
  '/sys/hypervisor',
  '/sys/kernel',
  '/sys/module',
];
export const READONLY_PATHS = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'];

/** The sandbox's own process: its command, environment and identity, with no capability and no way to gain one. */
export function ociProcess(spec: StagedSpec, user: ImageUser): OciProcess {
  const { config } = spec.image;
  const defaults = [`PATH=${DEFAULT_PATH}`, `HOME=${user.home ?? '/tmp'}`];
  return {
    terminal: false,
    user: { uid: user.uid, gid: user.gid },
    args: spec.command ?? [...config.entrypoint, ...config.cmd],
    env: mergeEnv([...defaults, ...config.env], spec.env),
    cwd: config.workingDir || '/',
    capabilities: Object.fromEntries(CAPABILITY_SETS.map((set) => [set, []])),
    rlimits: [
      { type: 'RLIMIT_NOFILE', hard: spec.limits.openFiles, soft: spec.limits.openFiles },
      { type: 'RLIMIT_CORE', hard: 0, soft: 0 },
    ],
    noNewPrivileges: true,
  };
}

/** What a process runs, and where it is looked for. */
export function commandOf({ args: [file = ''], env }: OciProcess): { file: string; path: string[] } {
  const path = env.find((entry) => entry.startsWith('PATH='))?.slice('PATH='.length) ?? '';
  return { file, path: path.split(':').map((directory) => directory || '.') };
}

/** Later entries win, as in a shell; entries without `=` are dropped. */
export function mergeEnv(base: string[], over: Record<string, string>): string[] {
  const merged = new Map<string, string>();
  for (const entry of base) {
    const at = entry.indexOf('=');
    if (at > 0) merged.set(entry.slice(0, at), entry.slice(at + 1));
  }
  for (const [name, value] of Object.entries(over)) merged.set(name, value);
  return [...merged].map(([name, value]) => `${name}=${value}`);
}

/** The bundle's config.json (OCI runtime specification 1.0) for one sandbox. */
export function ociConfig(input: OciConfigInput): OciConfig {
  const { spec, user } = input;
  const own = ociProcess(spec, user);
  const mapping = idMapping(input.ids);
  return {
    ociVersion: '1.0.2',
    // In a user namespace that is not the runtime's own it may set no limits: it begins with them.
    process: { ...own, args: underInit(own.args, spec), ...(input.userNamespace === undefined ? {} : { rlimits: [] }) },
    root: { path: input.rootPath, readonly: false },
    hostname: input.hostname,
    mounts: [...systemMounts(spec.limits), ...withInit(spec).map(bindMount)],
    linux: {
      namespaces: [
        ...(input.userNamespace === undefined ? [] : [{ type: 'user', path: input.userNamespace }]),
        { type: 'network', path: input.networkNamespace },
        { type: 'pid' },
        { type: 'mount' },
        { type: 'ipc' },
        { type: 'uts' },
        { type: 'cgroup' },
      ],
      ...(input.repeatMappings ? { uidMappings: mapping, gidMappings: mapping } : {}),
      // Only loopback speaks IPv6: the policy of the sandbox's network is written for IPv4.
      sysctl: { 'net.ipv6.conf.eth0.disable_ipv6': '1', 'net.ipv4.ping_group_range': '1 0' },
      cgroupsPath: input.cgroupsPath,
      resources: resources(spec.limits, input.swapLimit, input.own),
      maskedPaths: MASKED_PATHS,
      readonlyPaths: READONLY_PATHS,
      seccomp: input.seccomp,
    },
  };
}

function idMapping({ first, own }: HostIds): { containerID: number; hostID: number; size: number }[] {
  if (own) return [{ containerID: 0, hostID: first, size: RANGE_IDS }];
  return [
    { containerID: 0, hostID: first, size: 1 },
    { containerID: 1, hostID: 1, size: RANGE_IDS - 1 },
  ];
}

function resources(limits: SandboxLimits, swapLimit: boolean, own: OciConfigInput['own']): Record<string, unknown> {
  const memoryBytes = limits.memoryBytes + own.memoryBytes;
  return {
    devices: [{ allow: false, access: 'rwm' }],
    // Memory and swap together get the limit of memory alone: a sandbox never swaps.
    memory: {
      limit: memoryBytes,
      ...(limits.reservedMemoryBytes ? { reservation: limits.reservedMemoryBytes } : {}),
      ...(swapLimit ? { swap: memoryBytes } : {}),
    },
    pids: { limit: limits.pids + own.threads },
    cpu: {
      quota: Math.max(1000, Math.round(limits.cpu * CPU_PERIOD_US)),
      period: CPU_PERIOD_US,
      shares: Math.max(2, Math.round(limits.cpu * 1024)),
    },
  };
}

/** Size of /dev/shm, which counts as memory. */
export function shmBytes(limits: SandboxLimits): number {
  return Math.min(64 * MIB, Math.floor(limits.memoryBytes / 2));
}

function systemMounts(limits: SandboxLimits): Record<string, unknown>[] {
  return [
    { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'noexec', 'nodev'] },
    {
      destination: '/dev',
      type: 'tmpfs',
      source: 'tmpfs',
      options: ['nosuid', 'noexec', 'strictatime', 'mode=755', 'size=64k'],
    },
    {
      destination: '/dev/pts',
      type: 'devpts',
      source: 'devpts',
      options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620'],
    },
    {
      destination: '/dev/shm',
      type: 'tmpfs',
      source: 'shm',
      options: ['nosuid', 'noexec', 'nodev', 'mode=1777', `size=${shmBytes(limits)}`],
    },
    { destination: '/dev/mqueue', type: 'mqueue', source: 'mqueue', options: ['nosuid', 'noexec', 'nodev'] },
    { destination: '/sys', type: 'sysfs', source: 'sysfs', options: ['nosuid', 'noexec', 'nodev', 'ro'] },
    {
      destination: '/sys/fs/cgroup',
      type: 'cgroup',
      source: 'cgroup',
      options: ['nosuid', 'noexec', 'nodev', 'relatime', 'ro'],
    },
  ];
}

function bindMount(mount: HostMount): Record<string, unknown> {
  return {
    destination: mount.target,
    type: 'bind',
    source: mount.source,
    options: [
      mount.propagate ? 'rbind' : 'bind',
      'nosuid',
      'nodev',
      mount.readOnly ? 'ro' : 'rw',
      mount.propagate ? 'rslave' : 'rprivate',
    ],
  };
}
