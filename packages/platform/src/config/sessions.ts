import { bytes, decimal, integer, optionalBytes, seconds } from './setting.ts';

// Sessions, what is invoked in them, and how much of it there may be.

export const pool = {
  maxPerVersion: integer({
    about:
      'Most sandboxes that are started in advance for one version of a runtime. There are none before its first session, then one, and more only if sessions come fast. 0 = none.',
    default: ({ cpus }) => Math.min(8, cpus),
    defaultText: 'the CPUs of the machine, at most 8',
    min: 0,
    max: 1024,
  }),
  maxTotal: integer({
    about: 'Most sandboxes that are started in advance, of all runtimes and code interpreters together.',
    default: ({ cpus }) => Math.min(16, cpus * 2),
    defaultText: 'twice the CPUs of the machine, at most 16',
    min: 0,
    max: 4096,
  }),
  idleSeconds: seconds({
    about: 'How long after its last new session a version keeps sandboxes that were started in advance.',
    default: 600,
    min: 1,
    max: 86_400,
  }),
};

export const session = {
  idleSeconds: seconds({
    about: 'Idle time after which a session ends. A runtime may set another value.',
    default: 900,
    min: 0.1,
    max: 28_800,
  }),
  maxLifetimeSeconds: seconds({
    about: 'Time after which a session ends, even if it is active.',
    default: 28_800,
    min: 0.1,
    max: 28_800,
  }),
  storageBytes: bytes({
    about: 'Size of the sessionStorage of one session.',
    defaultText: '1 GiB',
    default: 2 ** 30,
    min: 16 * 2 ** 20,
    max: 2 ** 42,
  }),
  storageIdleSeconds: seconds({
    about: 'How long unused sessionStorage is kept.',
    defaultText: '14 days',
    default: 14 * 86_400,
    min: 60,
    max: 10 * 365 * 86_400,
  }),
  teardownSeconds: seconds({
    about: 'Time that a sandbox gets to end by itself before it is killed.',
    default: 15,
    min: 0,
    max: 600,
  }),
  pingIntervalSeconds: seconds({
    about: 'Time between two health checks of a session.',
    default: 2,
    min: 0.05,
    max: 600,
  }),
  pingTimeoutSeconds: seconds({
    about: 'Time limit for the answer to a health check.',
    default: 10,
    min: 0.05,
    max: 600,
  }),
  pingFailures: integer({
    about: 'Number of failed health checks in a row after which a session ends.',
    default: 3,
    min: 1,
    max: 100,
  }),
  usageIntervalSeconds: seconds({
    about: 'Time between two samples of what a session uses (CPU time, highest memory).',
    default: 10,
    min: 0.1,
    max: 3600,
  }),
};

export const images = {
  maxImageBytes: bytes({
    about: 'Largest container image, its layers as stored.',
    defaultText: '2 GiB',
    default: 2 * 2 ** 30,
    min: 2 ** 20,
    max: 2 ** 42,
  }),
  maxZipBytes: bytes({
    about: 'Largest zip of code.',
    defaultText: '250 MiB',
    default: 250 * 2 ** 20,
    min: 1024,
    max: 2 ** 40,
  }),
  maxUnzippedBytes: bytes({
    about: 'Largest total size of what such a zip holds.',
    defaultText: '750 MiB',
    default: 750 * 2 ** 20,
    min: 1024,
    max: 2 ** 40,
  }),
};

export const quotas = {
  sessionsPerAccount: integer({
    about:
      'Most live sessions of one account on one server, of agents and code interpreters together. Further sessions are refused with ServiceQuotaExceededException.',
    default: ({ memoryBytes }) => Math.min(1000, Math.max(16, Math.floor(memoryBytes / (32 * 2 ** 20)))),
    defaultText: '1000, at most one for each 32 MiB of the machine’s memory',
    min: 1,
    max: 1_000_000,
  }),
  versionsPerRuntime: integer({
    about: 'Versions that one agent runtime may have.',
    default: 1000,
    min: 1,
    max: 99_999,
  }),
  sessionLifetimeSeconds: seconds({
    about: 'Longest maxLifetime that a runtime may ask for its sessions.',
    default: 28_800,
    min: 60,
    max: 1_209_600,
  }),
  endpointsPerRuntime: integer({
    about: 'Endpoints that one agent runtime may have.',
    default: 10,
    min: 1,
    max: 100_000,
  }),
  imageBytesPerAccount: bytes({
    about:
      'Most disk space for the images of one account: what was pushed, pulled and made from code, and the unpacked images, where each file counts 4 KiB more. Then a push is refused (DENIED), and so is a new agent runtime (ServiceQuotaExceededException). The platform’s own base images do not count.',
    defaultText: '50 GiB',
    default: 50 * 2 ** 30,
    min: 2 ** 20,
    max: 2 ** 50,
  }),
  imagePartsPerAccount: integer({
    about:
      'Most manifests, tags and layers of one account in the platform’s registry. Each counts once in every repository that has it.',
    default: 100_000,
    min: 100,
    max: 100_000_000,
  }),
  invocationsPerSecond: decimal({
    about: 'Most invocations per second of one endpoint, with a burst of the same size. 0 = no limit.',
    default: 25,
    min: 0,
    max: 1_000_000,
  }),
  requestsPerSecond: decimal({
    about:
      'Most requests per second of one principal (a user, a role session, the subject of a token), with a burst of the same size. Further requests get 429. Requests from trustedAddresses do not count. 0 = no limit.',
    default: 1000,
    min: 0,
    max: 1_000_000,
  }),
  bytesPerMemory: optionalBytes({
    about:
      'Most bytes of one memory, with its indexes. Then nothing can be added (ServiceQuotaExceededException). Not set = a tenth of the disk of the data directory. 0 = no limit.',
    min: 0,
    max: 2 ** 50,
  }),
  memoryBytesPerAccount: optionalBytes({
    about: 'Most bytes of all memories of one account. Not set = a quarter of that disk. 0 = no limit.',
    min: 0,
    max: 2 ** 50,
  }),
  objectBytesPerBucket: optionalBytes({
    about:
      'Most bytes of one bucket of the embedded object store, with incomplete uploads. Then nothing can be added (QuotaExceeded). Not set = a quarter of that disk. 0 = no limit.',
    min: 0,
    max: 2 ** 50,
  }),
  objectBytesPerAccount: optionalBytes({
    about:
      'Most bytes of all buckets of one account in the embedded object store. Not set = a quarter of that disk. 0 = no limit.',
    min: 0,
    max: 2 ** 50,
  }),
  objectsPerAccount: integer({
    about: 'Most objects of one account in the embedded object store, with incomplete uploads.',
    default: 1_000_000,
    min: 1,
    max: 1_000_000_000,
  }),
  gatewayBytesPerAccount: bytes({
    about:
      'Most bytes of all gateway targets of one account: their settings, documents that are being read, and their tools, prompts and resources, each of which counts 4 KiB more. Then a target is refused (ServiceQuotaExceededException), or ends as FAILED with the reason.',
    defaultText: '1 GiB',
    default: 2 ** 30,
    min: 2 ** 20,
    max: 2 ** 50,
  }),
  refusalsPerSecond: decimal({
    about:
      'Most requests per second of one address that are refused for missing or wrong credentials, with a burst of the same size. Then all requests of that address get 429 until there are fewer, except operations with a valid signature that covers the hash of the body. trustedAddresses have no limit. 0 = no limit.',
    default: 100,
    min: 0,
    max: 1_000_000,
  }),
};
