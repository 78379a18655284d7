import { bytes, decimal, integer, optionalBytes, seconds } from './setting.ts';

// Sessions, what is invoked in them, and how much of it there may be.

export const pool = {
  maxPerVersion: integer({
    about:
      'Most sandboxes that stand ready for new sessions of one version of a runtime. There are none before its first session, one after it, and more only where sessions come fast; 0 = never any.',
    default: ({ cpus }) => Math.min(8, cpus),
    defaultText: 'the CPUs of the machine, at most 8',
    min: 0,
    max: 1024,
  }),
  maxTotal: integer({
    about: 'Most sandboxes that stand ready, of all runtimes and code interpreters together.',
    default: ({ cpus }) => Math.min(16, cpus * 2),
    defaultText: 'twice the CPUs of the machine, at most 16',
    min: 0,
    max: 4096,
  }),
  idleSeconds: seconds({
    about: 'How long after its last new session a version still has sandboxes that stand ready.',
    default: 600,
    min: 1,
    max: 86_400,
  }),
};

export const session = {
  idleSeconds: seconds({
    about: 'A session without activity for this long ends, unless its runtime says otherwise.',
    default: 900,
    min: 0.1,
    max: 28_800,
  }),
  maxLifetimeSeconds: seconds({
    about: 'A session ends after this long, active or not.',
    default: 28_800,
    min: 0.1,
    max: 28_800,
  }),
  storageBytes: bytes({
    about: 'Size of the storage of one session, for runtimes that have sessionStorage.',
    defaultText: '1 GiB',
    default: 2 ** 30,
    min: 16 * 2 ** 20,
    max: 2 ** 42,
  }),
  storageIdleSeconds: seconds({
    about: 'How long the storage of a session is kept that nobody uses.',
    defaultText: '14 days',
    default: 14 * 86_400,
    min: 60,
    max: 10 * 365 * 86_400,
  }),
  teardownSeconds: seconds({
    about: 'How long a sandbox may take to end by itself before it is killed.',
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
    about: 'How long the answer to a health check may take.',
    default: 10,
    min: 0.05,
    max: 600,
  }),
  pingFailures: integer({
    about: 'Health checks that fail in a row until the session ends.',
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
      'Live sessions of one account on one server, of agents and code interpreters together; beyond it a new one is refused with ServiceQuotaExceededException.',
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
      'What the images of one account may take together: layers and manifests that it pushed, that were pulled for it and that were made of its code, and its unpacked images, each file of which counts 4 KiB more; beyond it a push is refused (DENIED), and so is an agent runtime (ServiceQuotaExceededException). The platform’s own base images do not count.',
    defaultText: '50 GiB',
    default: 50 * 2 ** 30,
    min: 2 ** 20,
    max: 2 ** 50,
  }),
  imagePartsPerAccount: integer({
    about:
      'Manifests, tags and layers that the repositories of one account may hold together in the platform’s registry, each counted in every repository that has it.',
    default: 100_000,
    min: 100,
    max: 100_000_000,
  }),
  invocationsPerSecond: decimal({
    about: 'Invocations per second of one endpoint, with a burst of as many; 0 = no limit.',
    default: 25,
    min: 0,
    max: 1_000_000,
  }),
  requestsPerSecond: decimal({
    about:
      'Requests per second of one principal (a user, a session of a role, a subject of tokens) from other machines than trustedAddresses, with a burst of as many; beyond it they are answered with 429. 0 = no limit.',
    default: 1000,
    min: 0,
    max: 1_000_000,
  }),
  bytesPerMemory: optionalBytes({
    about:
      'What one memory may hold, its indexes counted; beyond it nothing is added (ServiceQuotaExceededException). Not set = a tenth of the disk that the data directory is on; 0 = no limit.',
    min: 0,
    max: 2 ** 50,
  }),
  memoryBytesPerAccount: optionalBytes({
    about: 'What all memories of one account may hold together. Not set = a quarter of that disk; 0 = no limit.',
    min: 0,
    max: 2 ** 50,
  }),
  objectBytesPerBucket: optionalBytes({
    about:
      'What one bucket of the embedded object store may hold, uploads that are not completed counted; beyond it nothing is added (QuotaExceeded). Not set = a quarter of that disk; 0 = no limit.',
    min: 0,
    max: 2 ** 50,
  }),
  objectBytesPerAccount: optionalBytes({
    about:
      'What all buckets of one account in the embedded object store may hold together. Not set = a quarter of that disk; 0 = no limit.',
    min: 0,
    max: 2 ** 50,
  }),
  objectsPerAccount: integer({
    about: 'Objects of one account in the embedded object store, uploads that are not completed counted.',
    default: 1_000_000,
    min: 1,
    max: 1_000_000_000,
  }),
  gatewayBytesPerAccount: bytes({
    about:
      'What the targets of all gateways of one account may take together: what they say, documents that are being read, and the tools, prompts and resources that were made of them, each of which counts 4 KiB more; beyond it a target is refused (ServiceQuotaExceededException), or ends as FAILED with the reason.',
    defaultText: '1 GiB',
    default: 2 ** 30,
    min: 2 ** 20,
    max: 2 ** 50,
  }),
  refusalsPerSecond: decimal({
    about:
      'Requests per second of one address, other than trustedAddresses, that are refused because nobody knows who sent them, with a burst of as many; beyond it whatever comes from that address is answered with 429, until they are fewer, but for calls of operations whose signature fits and names the hash of the body. 0 = no limit.',
    default: 100,
    min: 0,
    max: 1_000_000,
  }),
};
