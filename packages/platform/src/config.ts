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
      'Address by which browsers reach the platform, such as https://agents.example.com, where that is not the address that it listens on: behind a reverse proxy, or from other machines. Links to consent pages and the callback addresses of OAuth2 providers begin with it.',
    unit: 'URL',
    pattern: /^https?:\/\/[^\s?#@]+$/,
    expected: 'a URL without a query such as https://agents.example.com',
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
      'Directory for what can be made or fetched again: the prepared database, language runtimes, finished base images and those of code interpreters, the embedding model. Not set, it is one of this user that all data directories share, `agentplatform/platform` in `XDG_CACHE_HOME` or `~/.cache`; where it cannot be had, `cache` in the data directory.',
    unit: 'path',
    pattern: /^[^\0]+$/,
    expected: 'a path',
  }),
  json: onOff({
    about:
      'Prints the line that says the platform is ready as JSON, alone on stdout when called as npm run -s platform.',
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
    about:
      'Connections to one port of the platform at once; one more is closed as it comes. As many requests of HTTP/2, of which one connection may have 100, are under way at once; one more is refused.',
    default: 10_000,
    min: 16,
    max: 1_000_000,
  }),
  maxConnectionsPerAddress: integer({
    about:
      'Of these, connections of one address (of IPv6: of one /64), unless it is among trustedAddresses; one more is closed as it comes. A request of HTTP/2 counts as a connection more.',
    default: 2000,
    min: 1,
    max: 1_000_000,
  }),
  maxBodyBytesInMemory: bytes({
    about:
      'What the bodies of requests that are read whole may take of the memory together until they are answered; one more is refused with 503. The last quarter is for bodies of at most 64 KiB. One principal, or one address where nobody is known, has at most half, unless it is among trustedAddresses; beyond it he is answered with 429. Bodies that are streamed, such as of invocations and objects, do not count.',
    defaultText: '256 MiB',
    default: 256 * 2 ** 20,
    min: 2 ** 20,
    max: 2 ** 40,
  }),
  trustedAddresses: cidrs({
    about:
      'Addresses for which the limits of one address and of one principal do not hold (maxConnectionsPerAddress, quotas.refusalsPerSecond, quotas.requestsPerSecond): this machine’s own programs, reverse proxies, which stand for many clients and have limits of their own, and the other servers on the database. Nobody gets any right by it.',
    default: ['127.0.0.0/8', '::1/128'],
  }),
  requestHeadSeconds: seconds({
    about:
      'How long the head of a request may take to arrive, and a TLS handshake; a new connection that sends nothing is ended after as long.',
    default: 20,
    min: 1,
    max: 3600,
  }),
  connectionProbeSeconds: seconds({
    about:
      'How long nothing may come on a connection until the other side is asked whether it is still there (TCP keep-alive); without an answer for 10 s more the connection is ended, and what was done for it. While something is under way to it, the system’s own limit counts: some 15 minutes on Linux. A client of HTTP/2 is asked by PING as often, and cut if it has not answered by the next time.',
    default: 60,
    min: 1,
    max: 7200,
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
    webhooks: topicUrls({
      about:
        'Where notifications to topics are sent, which memory strategies that you manage yourself name by ARN: a URL for each topic, which may be private.',
      expected: 'topics with URLs, such as arn:aws:sns:us-east-1:123456789012:memory=https://example.com/hook',
    }),
    key: optionalWord({
      about: 'Key with which notifications are signed (HMAC-SHA-256 of the body, header x-agentplatform-signature).',
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
        'With databaseUrl: a server that did not reach the database for three quarters of this ends its sessions, and after all of it other servers may start them anew; one that did not hear for all of it what others changed answers 503. The same on all servers.',
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
      about: 'How long it is kept what each session used; longer than a month, for that is what bills are about.',
      unit: 'days',
      default: 400,
      min: 1,
      max: 36_500,
    }),
  },
  disk: {
    reserveBytes: bytes({
      about:
        'What is kept free of the disk that the data directory is on, and of those of the cache and the Docker daemon where they are others, unless disk.reservePercent is less: below it nothing new is written (events, objects, images, sessions: 503), while reading and deleting go on. Of the data directory’s last half, the sandbox whose own disk takes most is ended, until there is room. 0 = nothing is kept free.',
      defaultText: '2 GiB',
      default: 2 * 2 ** 30,
      min: 0,
      max: 2 ** 50,
    }),
    reservePercent: decimal({
      about: 'The same as a part of the disk; the smaller of the two counts.',
      unit: 'percent',
      default: 5,
      min: 0,
      max: 90,
    }),
  },
  objects: {
    endpoint: optionalWord({
      about:
        'S3-compatible store that s3:// locations are read from; the embedded one in the data directory when not set.',
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
        'File with the key that secrets are encrypted with, one in base64 a line, newest first; made with mode 0600 when missing. In a directory it is the file `master.key`. `keys/master.key` in the data directory when not set.',
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
