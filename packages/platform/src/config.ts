import { helpText } from './config/describe.ts';
import { type ConfigSources, loadSettings } from './config/load.ts';
import { configuredModels, embeddings, models, rerank } from './config/models.ts';
import { sandbox } from './config/sandbox.ts';
import { images, pool, quotas, session } from './config/sessions.ts';
import {
  bytes,
  choice,
  cidrs,
  decimal,
  integer,
  onOff,
  optionalWord,
  seconds,
  topicUrls,
  type ValuesOf,
  word,
} from './config/setting.ts';
import { telemetry } from './config/telemetry.ts';

import { settingsOf } from './service-module.ts';
import { services } from './services.ts';

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
  publicUrl: optionalWord({
    about:
      'Address at which browsers reach the platform, such as https://agents.example.com. Set it if the platform is behind a reverse proxy or is used from other machines. Links to consent pages and callback addresses of OAuth2 providers begin with it.',
    unit: 'URL',
    pattern: /^https?:\/\/[^\s?#@]+$/,
    expected: 'a URL without a query such as https://agents.example.com',
  }),
  tls: {
    on: onOff({
      flag: 'tls',
      about:
        'Also serves TLS on the host names of AWS, with a CA of the platform’s own. This is for clients that connect only to those names. `agentcore env --hosts` shows how to use it.',
      default: false,
    }),
    port: integer({
      about: 'TCP port for tls. Clients of the AWS host names use 443. 0 picks a free port.',
      unit: 'port',
      default: 443,
      min: 0,
      max: 65535,
    }),
  },
  data: word({
    about: 'Directory of all data that the platform keeps. It is created if it is missing.',
    unit: 'path',
    default: '.agentplatform',
    notInFile: true,
    pattern: /^[^\0]+$/,
    expected: 'a path',
  }),
  cache: optionalWord({
    about:
      'Directory for files that can be made or fetched again: the prepared database, language runtimes, base images, images of code interpreters, the embedding model. If not set, all data directories of a user share `agentplatform/platform` in `XDG_CACHE_HOME` or `~/.cache`. If that cannot be written, `cache` in the data directory is used.',
    unit: 'path',
    pattern: /^[^\0]+$/,
    expected: 'a path',
  }),
  json: onOff({
    about: 'Prints one line of JSON on stdout when the platform is ready. With npm, use npm run -s platform.',
    default: false,
    notInFile: true,
  }),
  region: word({
    about: 'Region in the ARNs that the platform makes. AWS_REGION is not read: ARNs must not change with the shell.',
    default: 'us-east-1',
    pattern: /^[a-z]{2}(-[a-z]+)+-\d{1,2}$/,
    expected: 'a region name such as us-east-1',
  }),
  accountId: optionalWord({
    about:
      'Account in the ARNs that the platform makes. If not set, the first start chooses a random one and keeps it in the data directory.',
    unit: '12 digits',
    pattern: /^\d{12}$/,
    expected: '12 digits',
  }),
  defaultRoleProviders: choice(['all', 'given'], {
    about:
      'Credential providers that agents of the role `default` may use: all of the account, or those alone whose ARNs are in their environment variables and that their deployer may give (agentplatform:UseCredentialProvider). A changed policy of the role stays as it is.',
    default: 'all',
  }),
  databaseUrl: optionalWord({
    about:
      'PostgreSQL (with pgvector) to use instead of the embedded database. Put a password into the environment, not on the command line.',
    unit: 'postgres:// URL',
    pattern: /^postgres(ql)?:\/\/\S+$/,
    expected: 'a URL such as postgres://user@host:5432/name',
  }),
  maxConnections: integer({
    about:
      'Most open connections to one port of the platform. Further connections are closed at once. The same limit holds for HTTP/2 requests, of which one connection may have 100. Further requests are refused.',
    default: 10_000,
    min: 16,
    max: 1_000_000,
  }),
  maxConnectionsPerAddress: integer({
    about:
      'Most open connections from one address, or from one /64 network of IPv6. An HTTP/2 request counts as one more connection. Further connections are closed at once. The limit does not hold for trustedAddresses.',
    default: 2000,
    min: 1,
    max: 1_000_000,
  }),
  maxBodyBytesInMemory: bytes({
    about:
      'Most memory for the bodies of requests that are not answered yet. Further requests get 503. The last quarter is kept for bodies of at most 64 KiB. One principal, or one address without credentials, may use half and then gets 429, unless it is among trustedAddresses. Streamed bodies, such as those of invocations and objects, do not count.',
    defaultText: '256 MiB',
    default: 256 * 2 ** 20,
    min: 2 ** 20,
    max: 2 ** 40,
  }),
  trustedAddresses: cidrs({
    about:
      'Addresses without limits for one address and one principal (maxConnectionsPerAddress, quotas.refusalsPerSecond, quotas.requestsPerSecond). List this machine’s own programs, reverse proxies, and the other servers on the database. It gives no permissions.',
    default: ['127.0.0.0/8', '::1/128'],
  }),
  requestHeadSeconds: seconds({
    about:
      'Time limit for the headers of a request and for a TLS handshake. A new connection that sends nothing is closed after this time, too.',
    default: 20,
    min: 1,
    max: 3600,
  }),
  connectionProbeSeconds: seconds({
    about:
      'Time without data on a connection until the platform asks whether the client is still there, by TCP keep-alive or an HTTP/2 PING. A connection without an answer is closed: after 10 s more, or with HTTP/2 at the next PING. While data is on its way to the client, the system’s own limit holds, about 15 minutes on Linux.',
    default: 60,
    min: 1,
    max: 7200,
  }),
  shutdownGraceSeconds: seconds({
    about: 'Time that requests in flight get after SIGTERM.',
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
        'Least important lines that are logged: error = a person must act, warn = something is degraded, info = starts and ends, debug = the path of each request.',
      default: 'info',
    }),
    format: choice(['auto', 'pretty', 'json'], {
      about: 'Format of log lines on stderr. auto is pretty on a terminal and JSON elsewhere.',
      default: 'auto',
    }),
  },
  outbound: {
    allowPrivateEgress: cidrs({
      about: 'Private or loopback ranges that the platform may call when a user gives it an address there.',
      default: [],
      flag: 'allow-private-egress',
    }),
  },
  notifications: {
    webhooks: topicUrls({
      about:
        'URLs for SNS topics, to which self-managed memory strategies send notifications. The URLs may be private.',
      expected: 'topics with URLs, such as arn:aws:sns:us-east-1:123456789012:memory=https://example.com/hook',
    }),
    key: optionalWord({
      about: 'Key that signs notifications (HMAC-SHA-256 of the body, header x-agentplatform-signature).',
      secret: true,
      pattern: /^\S+$/,
      expected: 'a key without spaces',
    }),
  },
  telemetry,
  embeddings,
  rerank,
  models,
  sandbox,
  pool,
  servers: {
    leaseSeconds: seconds({
      about:
        'With databaseUrl: how long a server may be without the database. After three quarters of this time it ends its sessions. After all of it, other servers may start them again. A server that has heard of no changes by others for this time answers 503. Set the same value on all servers.',
      default: 60,
      min: 2,
      max: 3600,
    }),
    address: optionalWord({
      about:
        'With databaseUrl: the address at which other servers reach this one, to forward requests for its sessions. If not set, it is the host and port that the server listens on. Use a network of their own between servers.',
      unit: 'host:port',
      pattern: /^(\[[0-9a-fA-F:]+\]|[\w.-]+):\d{1,5}$/,
      expected: 'a host and a port, such as 10.0.0.7:4100',
    }),
  },
  session,
  ...settingsOf(services),
  images,
  quotas,
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
      about: 'How long the usage of each session is kept. Keep it longer than a month if you make monthly bills.',
      unit: 'days',
      default: 400,
      min: 1,
      max: 36_500,
    }),
  },
  disk: {
    reserveBytes: bytes({
      about:
        'Free space that the platform keeps on the disk of the data directory, and on the disks of the cache and the Docker daemon. With less free space it writes nothing new (events, objects, images, sessions get 503). Reading and deleting go on. With less than half of it on the disk of the data directory, the platform ends the sandbox with the largest disk until there is room. 0 = nothing is kept free.',
      defaultText: '2 GiB',
      default: 2 * 2 ** 30,
      min: 0,
      max: 2 ** 50,
    }),
    reservePercent: decimal({
      about: 'The same as a percentage of the disk. The smaller of the two values holds.',
      unit: 'percent',
      default: 5,
      min: 0,
      max: 90,
    }),
  },
  objects: {
    endpoint: optionalWord({
      about: 'S3-compatible store for s3:// locations. If not set, it is the embedded store in the data directory.',
      unit: 'URL',
      pattern: /^https?:\/\/[^\s/@]+\/?$/,
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
        'File of the keys that encrypt secrets: one key in base64 on each line, the newest first. It is created with mode 0600 if it is missing. If the path is a directory, it is the file `master.key` there. If not set, it is `keys/master.key` in the data directory.',
      unit: 'path',
      pattern: /^[^\0]+$/,
      expected: 'a path',
    }),
    key: optionalWord({
      about: 'The key itself, instead of a file.',
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
    problems.push('secrets.key and secrets.keyFile cannot be set together');
  }
  const names = configuredModels(config.models).map(({ name }) => name);
  const listed = names.join(', ') || 'there is none';
  const { default: chosen } = config.models;
  if (chosen !== undefined && !names.includes(chosen)) {
    problems.push(`models.default must be a model that is set up: ${listed}`);
  }
  if (config.memory.model !== undefined && !['none', ...names].includes(config.memory.model)) {
    problems.push(`memory.model must be none or a model that is set up: ${listed}`);
  }
  return problems;
}
