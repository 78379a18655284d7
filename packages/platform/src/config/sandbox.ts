import { PLACES } from '../kernel/shared-places/index.ts';
import { bytes, choice, cidrs, decimal, integer, optionalWord, seconds, word } from './setting.ts';

// Where sandboxes run and what each may use.

export const sandbox = {
  provider: choice(['auto', 'oci', 'docker', 'process'], {
    about:
      'How sessions are isolated; auto takes the best isolation that works here and never falls back to process, which has none.',
    default: 'auto',
    flag: 'sandbox',
  }),
  ociRuntime: word({
    about: 'Command of the OCI runtime that provider oci drives: runc, runsc, crun or kata-runtime, by name or path.',
    unit: 'command',
    default: 'runc',
    pattern: /^[\w./+-]+$/,
    expected: 'a command name or path',
  }),
  dockerSocket: word({
    about: 'Where the Docker daemon listens that provider docker uses; it must run on this host as root.',
    unit: 'path',
    default: '/var/run/docker.sock',
    pattern: /^\/[^\0]+$/,
    expected: 'an absolute path',
  }),
  dockerRuntime: optionalWord({
    about:
      "Runtime of that daemon, e.g. runsc or kata-runtime, by the name it has there; the daemon's default when not set.",
    pattern: /^[\w.+-]+$/,
    expected: 'the name of a runtime',
  }),
  egress: choice(['restricted', 'none'], {
    about: 'What a sandbox may reach: restricted = the internet without private ranges, none = nothing.',
    default: 'restricted',
  }),
  allowPrivateEgress: cidrs({
    about:
      'Private ranges that every sandbox may reach all the same. One service for one agent: agentcore deploy --allow-egress HOST:PORT.',
    default: [],
  }),
  cniDir: word({
    about: 'Directory with the CNI plugins ptp, host-local and loopback.',
    unit: 'path',
    default: '/usr/lib/cni',
    pattern: /^[^\0]+$/,
    expected: 'a path',
  }),
  disk: choice(['loop', 'tmpfs'], {
    about: 'Where a sandbox writes: loop = an ext4 file of its own, tmpfs = memory, for hosts without loop devices.',
    default: 'loop',
  }),
  snapshotBytes: bytes({
    about:
      'Snapshots of warm agents that are kept on disk, on gVisor: a session of a version with a warm-up hook begins from one. 0 = none.',
    defaultText: '4 GiB',
    default: 4 * 2 ** 30,
    min: 0,
    max: 2 ** 42,
  }),
  preparedNetworks: integer({
    about: 'Networks that are kept ready, so that a new sandbox need not wait for one.',
    default: 2,
    min: 0,
    max: 256,
  }),
  firstId: integer({
    about:
      'First id of the host that sandboxes of provider oci are given, rounded up to a multiple of 65,536: from there on each has 65,536 to itself while it lives. Ranges that /etc/subuid, /etc/subgid or accounts of this machine name are left out, but for lines of /etc/subuid that name agentplatform.',
    default: 2_000_224_256,
    min: 131_072,
    max: 4_294_901_760,
  }),
  idRanges: integer({
    about: 'How many ranges of 65,536 ids there are for the sandboxes of all platforms on this machine.',
    default: 2048,
    min: 2,
    max: 60_000,
  }),
  limits: {
    cpu: decimal({
      about: 'Virtual CPUs that one sandbox may use.',
      default: ({ cpus }) => Math.min(2, cpus),
      defaultText: '2, at most what the machine has',
      min: 0.05,
      max: 256,
    }),
    memoryBytes: bytes({
      about: 'Memory that one sandbox may use.',
      default: ({ memoryBytes }) => Math.min(8 * 2 ** 30, Math.floor((memoryBytes * 3) / 4)),
      defaultText: '8 GiB, at most three quarters of the machine',
      min: 16 * 2 ** 20,
      max: 2 ** 42,
    }),
    pids: integer({ about: 'Processes and threads of one sandbox.', default: 1024, min: 8, max: 4_194_304 }),
    diskBytes: bytes({
      about: 'What one sandbox may write to its root file system and /tmp together.',
      defaultText: '2 GiB',
      default: 2 * 2 ** 30,
      min: 2 ** 20,
      max: 2 ** 42,
    }),
    openFiles: integer({
      about: 'Files that one process of a sandbox may hold open.',
      default: ({ openFiles }) => Math.min(65_536, openFiles),
      defaultText: '65536, at most the hard limit of the server itself',
      min: 64,
      max: 1_048_576,
    }),
  },
  sharedMounts: optionalWord({
    about:
      "Places that sandboxes share, by the access point whose ARN a runtime's filesystemConfigurations names: a directory of this server, an NFS export, or a prefix of the object store that `objects` names.",
    unit: 'fsap-ID=/DIR|nfs://HOST/EXPORT|s3://BUCKET/PREFIX[,…]',
    pattern: PLACES,
    expected: 'access points with places, such as fsap-0123456789abcdef0=/srv/shared',
  }),
  maxConnections: integer({
    about:
      'Connections that one sandbox may have at once to the platform (169.254.170.2); one more is closed as it comes.',
    default: 64,
    min: 1,
    max: 100_000,
  }),
  requestsPerSecond: decimal({
    about:
      'Requests per second of one sandbox to the platform, with a burst of as many; beyond it they are answered with 429. 0 = no limit.',
    default: 250,
    min: 0,
    max: 1_000_000,
  }),
  credentialsSeconds: seconds({
    about:
      'How long the credentials of its execution role count that a sandbox is given; new ones are there when half of it is over.',
    default: 3600,
    min: 900,
    max: 3600,
  }),
  startTimeoutSeconds: seconds({
    about: 'How long a new sandbox may take until it answers on its port.',
    default: 60,
    min: 0.1,
    max: 3600,
  }),
  maxConcurrentStarts: integer({
    about: 'Sandboxes that start at the same time; more wait.',
    default: ({ cpus }) => Math.max(2, cpus * 2),
    defaultText: 'twice the CPUs of the machine',
    min: 1,
    max: 1024,
  }),
  maxQueuedStarts: integer({
    about: 'Starts that may wait; beyond it a new session is refused with ThrottlingException.',
    default: 256,
    min: 0,
    max: 100_000,
  }),
};
