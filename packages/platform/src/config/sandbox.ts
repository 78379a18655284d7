import { PLACES } from '../kernel/shared-places/index.ts';
import { bytes, choice, cidrs, decimal, integer, optionalWord, seconds, word } from './setting.ts';

// Where sandboxes run and what each may use.

export const sandbox = {
  provider: choice(['auto', 'oci', 'docker', 'process'], {
    about:
      'How sessions are isolated. auto takes the best isolation that works on this machine. It never takes process, which has none.',
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
    about: 'Socket of the Docker daemon for the provider docker. The daemon must run on this host as root.',
    unit: 'path',
    default: '/var/run/docker.sock',
    pattern: /^\/[^\0]+$/,
    expected: 'an absolute path',
  }),
  dockerRuntime: optionalWord({
    about: "Name of a runtime of that daemon, such as runsc or kata-runtime. If not set, it is the daemon's default.",
    pattern: /^[\w.+-]+$/,
    expected: 'the name of a runtime',
  }),
  egress: choice(['restricted', 'none'], {
    about: 'What a sandbox may reach: restricted = the internet without private ranges, none = nothing.',
    default: 'restricted',
  }),
  allowPrivateEgress: cidrs({
    about:
      'Private ranges that every sandbox may reach. To open one service for one agent, use agentcore deploy --allow-egress HOST:PORT.',
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
    about: 'Disk of a sandbox: loop = an ext4 file of its own, tmpfs = memory, for hosts without loop devices.',
    default: 'loop',
  }),
  snapshotBytes: bytes({
    about:
      'Disk space for snapshots of warm agents on gVisor. Sessions of a version with a warm-up hook start from a snapshot. 0 = no snapshots.',
    defaultText: '4 GiB',
    default: 4 * 2 ** 30,
    min: 0,
    max: 2 ** 42,
  }),
  preparedNetworks: integer({
    about: 'Networks that are made in advance for new sandboxes.',
    default: 2,
    min: 0,
    max: 256,
  }),
  firstId: integer({
    about:
      'First user id of the host for sandboxes of the provider oci, rounded up to a multiple of 65,536. Each sandbox has 65,536 ids of its own while it runs. Ranges in /etc/subuid, /etc/subgid and ids of accounts of this machine are not used, except lines of /etc/subuid for agentplatform.',
    default: 2_000_224_256,
    min: 131_072,
    max: 4_294_901_760,
  }),
  idRanges: integer({
    about: 'Number of ranges of 65,536 ids for the sandboxes of all platforms on this machine.',
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
    pids: integer({ about: 'Most processes and threads of one sandbox.', default: 1024, min: 8, max: 4_194_304 }),
    diskBytes: bytes({
      about: 'Disk space of one sandbox: its root file system and /tmp together.',
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
      'Places that sandboxes can share, each under the id of an access point. A place is a directory of this server, an NFS export, or a prefix of the object store. Runtimes name the access point in filesystemConfigurations.',
    unit: 'fsap-ID=/DIR|nfs://HOST/EXPORT|s3://BUCKET/PREFIX[,…]',
    pattern: PLACES,
    expected: 'access points with places, such as fsap-0123456789abcdef0=/srv/shared',
  }),
  maxConnections: integer({
    about:
      'Most open connections of one sandbox to the platform (169.254.170.2). Further connections are closed at once.',
    default: 64,
    min: 1,
    max: 100_000,
  }),
  requestsPerSecond: decimal({
    about:
      'Most requests per second of one sandbox to the platform, with a burst of the same size. Further requests get 429. 0 = no limit.',
    default: 250,
    min: 0,
    max: 1_000_000,
  }),
  credentialsSeconds: seconds({
    about: 'How long the role credentials of a sandbox are valid. The sandbox gets new ones after half of this time.',
    default: 3600,
    min: 900,
    max: 3600,
  }),
  startTimeoutSeconds: seconds({
    about: 'Time limit for a new sandbox to answer on its port.',
    default: 60,
    min: 0.1,
    max: 3600,
  }),
  maxConcurrentStarts: integer({
    about: 'Most sandboxes that start at the same time. Others wait.',
    default: ({ cpus }) => Math.max(2, cpus * 2),
    defaultText: 'twice the CPUs of the machine',
    min: 1,
    max: 1024,
  }),
  maxQueuedStarts: integer({
    about: 'Most starts that may wait. Further sessions are refused with ThrottlingException.',
    default: 256,
    min: 0,
    max: 100_000,
  }),
};
