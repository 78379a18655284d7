import { helpText } from './config/describe.ts';
import { type ConfigSources, loadSettings } from './config/load.ts';
import {
  bytes,
  choice,
  cidrs,
  decimal,
  integer,
  onOff,
  optionalWord,
  seconds,
  type ValuesOf,
  word,
} from './config/setting.ts';
import { PLACES } from './kernel/shared-places/index.ts';

export { ConfigError, type ConfigSources } from './config/load.ts';

/** Every setting of the platform. The path of a setting is its name in the file, on the command line and in the environment. */
export const settings = {
  host: word({
    about: 'Address that the platform listens on. Anything but a loopback address lets other machines in.',
    unit: 'IP address',
    default: '127.0.0.1',
    pattern: /^[0-9a-fA-F.:]+$/,
    expected: 'an IP address such as 127.0.0.1, 0.0.0.0 or ::1',
  }),
  port: integer({
    about: 'TCP port that the platform listens on; 0 picks a free one.',
    unit: 'port',
    default: 4100,
    min: 0,
    max: 65535,
  }),
  tls: {
    on: onOff({
      flag: 'tls',
      about:
        'Serves TLS on the host names of the original as well, with a CA of the platform’s own, for clients that take no other address; `agentcore env --hosts` says how to use it.',
      default: false,
    }),
    port: integer({
      about: 'TCP port of that; clients that insist on the host names go to 443. 0 picks a free one.',
      unit: 'port',
      default: 443,
      min: 0,
      max: 65535,
    }),
  },
  data: word({
    about: 'Directory that holds everything the platform keeps; made when missing.',
    unit: 'path',
    default: '.agentplatform',
    notInFile: true,
    pattern: /^[^\0]+$/,
    expected: 'a path',
  }),
  cache: optionalWord({
    about:
      'Directory for what can be made or fetched again: the prepared database, language runtimes, and, where it is set, finished base images and those of code interpreters. Several data directories of one user may share one; `cache` in the data directory when not set.',
    unit: 'path',
    pattern: /^[^\0]+$/,
    expected: 'a path',
  }),
  json: onOff({ about: 'Prints the line that says the platform is ready as JSON.', default: false, notInFile: true }),
  region: word({
    about: 'Region in the ARNs that the platform makes. AWS_REGION is not read: ARNs must not change with the shell.',
    default: 'us-east-1',
    pattern: /^[a-z]{2}(-[a-z]+)+-\d{1,2}$/,
    expected: 'a region name such as us-east-1',
  }),
  accountId: optionalWord({
    about:
      'Account in the ARNs that the platform makes; random at first boot and kept in the data directory when not set.',
    unit: '12 digits',
    pattern: /^\d{12}$/,
    expected: '12 digits',
  }),
  databaseUrl: optionalWord({
    about:
      'PostgreSQL (with pgvector) to use instead of the embedded database. A password belongs into the environment, not the command line.',
    unit: 'postgres:// URL',
    pattern: /^postgres(ql)?:\/\/\S+$/,
    expected: 'a URL such as postgres://user@host:5432/name',
  }),
  maxConnections: integer({
    about: 'Connections to one port of the platform at once; one more is closed as it comes.',
    default: 10_000,
    min: 16,
    max: 1_000_000,
  }),
  shutdownGraceSeconds: seconds({
    about: 'How long requests in flight may go on after SIGTERM.',
    default: 10,
    min: 0,
    max: 3600,
  }),
  metrics: choice(['loopback', 'public', 'off'], {
    about:
      'Who may read Prometheus metrics on /metrics: loopback = programs on this machine, and signed requests that may agentplatform:ReadMetrics; public = everybody who reaches the port; off = nobody.',
    default: 'loopback',
  }),
  log: {
    level: choice(['error', 'warn', 'info', 'debug'], {
      about:
        'Least important kind of line that is written: error = a person must act, warn = degraded, info = life cycle, debug = the path of one request.',
      default: 'info',
    }),
    format: choice(['auto', 'pretty', 'json'], {
      about: 'Shape of a log line on stderr; auto is pretty on a terminal and JSON elsewhere.',
      default: 'auto',
    }),
  },
  outbound: {
    allowPrivateEgress: cidrs({
      about:
        'Private or loopback ranges that the calls which the platform itself makes to user-supplied addresses may reach.',
      default: [],
      flag: 'allow-private-egress',
    }),
  },
  notifications: {
    webhooks: optionalWord({
      about:
        'Where notifications to topics are sent, which memory strategies that you manage yourself name by ARN: a URL for each topic.',
      unit: 'ARN=URL[,…]',
      pattern: /^arn:aws[a-z-]*:sns:[^=\s,]+=https?:\/\/\S+$/,
      expected: 'topics with URLs, such as arn:aws:sns:us-east-1:123456789012:memory=https://example.com/hook',
    }),
    key: optionalWord({
      about: 'Key with which notifications are signed (HMAC-SHA-256 of the body, header x-agentplatform-signature).',
      secret: true,
      pattern: /^\S+$/,
      expected: 'a key without spaces',
    }),
  },
  embeddings: {
    directory: optionalWord({
      about:
        'Directory of a local sentence-transformers model (BERT, model.safetensors) that memory searches with; models/embedding in the data directory is used when it is there.',
      unit: 'path',
      pattern: /^[^\0]+$/,
      expected: 'a path',
    }),
    url: optionalWord({
      about:
        'Base URL of an OpenAI-compatible service whose embeddings memory searches with, instead of a local model.',
      unit: 'URL',
      pattern: /^https?:\/\/\S+$/,
      expected: 'a URL such as http://localhost:11434/v1',
    }),
    api: choice(['openai', 'bedrock'], {
      about:
        'What embeddings.url speaks: openai = POST /embeddings; bedrock = InvokeModel of Amazon Bedrock for Titan and Cohere models, with a Bedrock API key as embeddings.key.',
      default: 'openai',
    }),
    model: word({
      about: 'Name of the embedding model at embeddings.url. Another name makes all vectors anew, in the background.',
      default: 'text-embedding-3-small',
      pattern: /^\S+$/,
      expected: 'the name of a model',
    }),
    key: optionalWord({
      about: 'API key for embeddings.url.',
      secret: true,
      pattern: /^\S+$/,
      expected: 'a key without spaces',
    }),
  },
  rerank: {
    url: optionalWord({
      about:
        'Base URL of a service with a Cohere-compatible /rerank, whose model has the last word on the order of what memory finds; without it there is none.',
      unit: 'URL',
      pattern: /^https?:\/\/\S+$/,
      expected: 'a URL such as https://api.cohere.com/v2',
    }),
    model: word({
      about: 'Name of the rerank model at rerank.url.',
      default: 'rerank-v3.5',
      pattern: /^\S+$/,
      expected: 'the name of a model',
    }),
    key: optionalWord({
      about: 'API key for rerank.url.',
      secret: true,
      pattern: /^\S+$/,
      expected: 'a key without spaces',
    }),
  },
  models: {
    url: optionalWord({
      about:
        'Base URL of an OpenAI-compatible service whose model makes long-term memory of conversations; without it that is done by rules.',
      unit: 'URL',
      pattern: /^https?:\/\/\S+$/,
      expected: 'a URL such as http://localhost:11434/v1',
    }),
    name: word({
      about: 'Name of the model at models.url; a strategy may name another one.',
      default: 'gpt-4.1-mini',
      pattern: /^\S+$/,
      expected: 'the name of a model',
    }),
    key: optionalWord({
      about: 'API key for models.url.',
      secret: true,
      pattern: /^\S+$/,
      expected: 'a key without spaces',
    }),
  },
  memory: {
    extractionDelaySeconds: decimal({
      about: 'How long events of a session may gather before long-term records are made of them together.',
      unit: 'seconds',
      default: 1,
      min: 0,
      max: 3600,
    }),
  },
  sandbox: {
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
      about: 'Private ranges that sandboxes may reach all the same.',
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
    preparedNetworks: integer({
      about: 'Networks that are kept ready, so that a new sandbox need not wait for one.',
      default: 2,
      min: 0,
      max: 256,
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
        "Places that sandboxes share, by the access point whose ARN a runtime's filesystemConfigurations names: a directory of this server, or an NFS export.",
      unit: 'fsap-ID=/DIR|nfs://HOST/EXPORT[,…]',
      pattern: PLACES,
      expected: 'access points with places, such as fsap-0123456789abcdef0=/srv/shared',
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
  },
  pool: {
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
  },
  servers: {
    leaseSeconds: seconds({
      about:
        'With databaseUrl: a server that did not reach the database for three quarters of this ends its sessions, and after all of it other servers may start them anew. The same on all servers.',
      default: 60,
      min: 2,
      max: 3600,
    }),
    address: optionalWord({
      about:
        'With databaseUrl: where the other servers on the database reach this one, to hand on requests for its sessions; host and port that it listens on when not set. The way between servers should be a network of their own.',
      unit: 'host:port',
      pattern: /^(\[[0-9a-fA-F:]+\]|[\w.-]+):\d{1,5}$/,
      expected: 'a host and a port, such as 10.0.0.7:4100',
    }),
  },
  session: {
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
  },
  invocation: {
    maxPayloadBytes: bytes({
      about: 'Largest request body of an invocation.',
      default: 100_000_000,
      min: 1024,
      max: 2 ** 40,
    }),
    timeoutSeconds: seconds({
      about: 'How long the first byte of an answer may take.',
      default: 900,
      min: 0.1,
      max: 28_800,
    }),
    maxMessageBytes: bytes({
      about: 'Largest message of a WebSocket, in either direction.',
      defaultText: '10 MiB',
      default: 10 * 2 ** 20,
      min: 1024,
      max: 2 ** 30,
    }),
    streamTimeoutSeconds: seconds({
      about: 'How long a streamed answer may go on.',
      default: 3600,
      min: 0.1,
      max: 28_800,
    }),
  },
  codeInterpreter: {
    image: choice(['full', 'slim'], {
      about:
        'What code-interpreter sessions run on: slim = the kernels alone, full = with the libraries for data work; until that one is made, slim serves.',
      default: 'full',
    }),
    builtInNetwork: choice(['PUBLIC', 'SANDBOX'], {
      about: 'Network of aws.codeinterpreter.v1: PUBLIC = what sandboxes may reach, SANDBOX = nothing.',
      default: 'PUBLIC',
    }),
    subnets: optionalWord({
      about: 'Networks that code interpreters in VPC mode may name, e.g. subnet-0123456789abcdef0=10.1.0.0/16.',
      unit: 'subnet=CIDR[,…]',
      pattern: /^subnet-[0-9a-zA-Z]{8,17}=[0-9a-f.:/]+(,subnet-[0-9a-zA-Z]{8,17}=[0-9a-f.:/]+)*$/,
      expected: 'subnet ids with ranges, such as subnet-0123456789abcdef0=10.1.0.0/16',
    }),
    warmSessions: integer({
      about: 'Sessions kept ready for an interpreter that was used lately.',
      default: 1,
      min: 0,
      max: 64,
    }),
    executionSeconds: seconds({
      about: 'How long code, or a command that is waited for, may run.',
      default: 600,
      min: 1,
      max: 28_800,
    }),
  },
  images: {
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
  },
  quotas: {
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
    invocationsPerSecond: decimal({
      about: 'Invocations per second of one endpoint, with a burst of as many; 0 = no limit.',
      default: 25,
      min: 0,
      max: 1_000_000,
    }),
  },
  retention: {
    auditDays: integer({
      about: 'How long the audit trail keeps an answered request.',
      unit: 'days',
      default: 90,
      min: 1,
      max: 36_500,
    }),
    sessionDays: integer({
      about: 'How long ended sessions and what their agents printed last are kept.',
      unit: 'days',
      default: 30,
      min: 1,
      max: 36_500,
    }),
    usageDays: integer({
      about: 'How long it is kept what each session used; longer than a month, for that is what bills are about.',
      unit: 'days',
      default: 400,
      min: 1,
      max: 36_500,
    }),
  },
  objects: {
    endpoint: optionalWord({
      about:
        'S3-compatible store that s3:// locations are read from; the embedded one in the data directory when not set.',
      unit: 'URL',
      pattern: /^https?:\/\/[^\s/]+\/?$/,
      expected: 'a URL such as https://s3.example.com',
    }),
    accessKeyId: optionalWord({ about: 'Access key for that store.', pattern: /^\S+$/, expected: 'one word' }),
    secretAccessKey: optionalWord({
      about: 'Secret of that access key.',
      secret: true,
      pattern: /^\S+$/,
      expected: 'one word',
    }),
  },
  secrets: {
    keyFile: optionalWord({
      about:
        'File with the key that secrets are encrypted with, made with mode 0600 when missing; `secrets.key` in the data directory when not set.',
      unit: 'path',
      pattern: /^[^\0]+$/,
      expected: 'a path',
    }),
    key: optionalWord({
      about: 'That key itself, instead of a file.',
      unit: '32 bytes in base64',
      secret: true,
      pattern: /^[A-Za-z0-9+/]{43}=$/,
      expected: '32 bytes in base64 (44 characters)',
    }),
  },
} as const;

/** The platform's configuration, checked and complete. Durations are in seconds, sizes in bytes, paths absolute. */
export type Config = ValuesOf<typeof settings>;

/** Text of `npm run platform -- --help`. */
export const configHelp = (columns?: number): string => helpText(settings, columns);

/**
 * Reads the configuration from the command line, `AGENTPLATFORM_…` variables and `<data>/config.json`, in that order of
 * precedence. Throws one `ConfigError` that lists everything that is wrong.
 */
export function loadConfig(argv: readonly string[], env: NodeJS.ProcessEnv, sources?: ConfigSources): Config {
  return loadSettings(settings, argv, env, sources, crossChecks);
}

function crossChecks(config: Config): string[] {
  const problems: string[] = [];
  if (config.session.idleSeconds > config.session.maxLifetimeSeconds) {
    problems.push('session.idleSeconds must not be longer than session.maxLifetimeSeconds');
  }
  if ((config.objects.accessKeyId === undefined) !== (config.objects.secretAccessKey === undefined)) {
    problems.push('objects.accessKeyId and objects.secretAccessKey must be set together');
  }
  if (config.secrets.key !== undefined && config.secrets.keyFile !== undefined) {
    problems.push('secrets.key and secrets.keyFile exclude each other');
  }
  return problems;
}
