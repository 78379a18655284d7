import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { configurationDocs } from './config/describe.ts';
import { configuredModels } from './config/models.ts';
import { namedSettings } from './config/names.ts';
import { setting } from './config/setting.ts';
import { type Config, ConfigError, type ConfigSources, configHelp, loadConfig, settings } from './config.ts';

const machine = { cpus: 2, memoryBytes: 24 * 2 ** 30, openFiles: 20_000 };

function load(argv: string[], env: NodeJS.ProcessEnv = {}, file?: unknown, over: Partial<ConfigSources> = {}): Config {
  return loadConfig(argv, env, {
    machine,
    cwd: '/srv',
    readFile: (path) =>
      path.endsWith('/config.json') && file !== undefined
        ? typeof file === 'string'
          ? file
          : JSON.stringify(file)
        : undefined,
    ...over,
  });
}

function problems(argv: string[], env: NodeJS.ProcessEnv = {}, file?: unknown): readonly string[] {
  try {
    load(argv, env, file);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('loadConfig', () => {
  it('serves with nothing set', () => {
    const config = load([]);
    expect(config).toMatchObject({
      host: '127.0.0.1',
      port: 4100,
      data: '/srv/.agentplatform',
      region: 'us-east-1',
      accountId: undefined,
      sandbox: { provider: 'auto', limits: { cpu: 2, memoryBytes: 8 * 2 ** 30 } },
      session: { idleSeconds: 900, maxLifetimeSeconds: 28_800, teardownSeconds: 15 },
      invocation: { maxPayloadBytes: 100_000_000 },
      outbound: { allowPrivateEgress: [] },
    });
  });

  it('takes the command line before the environment before the file before the default', () => {
    const file = { port: 3, session: { idleSeconds: 30 }, log: { level: 'debug' } };
    const env = { AGENTPLATFORM_PORT: '2', AGENTPLATFORM_SESSION_IDLE_SECONDS: '20' };
    const config = load(['--port', '1'], env, file);
    expect([config.port, config.session.idleSeconds, config.log.level, config.region]).toEqual([
      1,
      20,
      'debug',
      'us-east-1',
    ]);
  });

  it('reads config.json from the data directory that the command line or the environment names', () => {
    const seen: string[] = [];
    const readFile = (path: string): undefined => {
      seen.push(path);
      return undefined;
    };
    load(['--data=/var/a'], { AGENTPLATFORM_DATA: '/var/b' }, undefined, { readFile });
    load([], { AGENTPLATFORM_DATA: 'c' }, undefined, { readFile });
    expect(seen).toEqual(['/var/a/config.json', '/srv/c/config.json']);
  });

  it('understands durations, sizes, switches and ranges', () => {
    const config = load([
      '--session-idle-seconds=15m',
      '--session-ping-interval-seconds',
      '200ms',
      '--sandbox-limits-memory-bytes=512MiB',
      '--images-max-image-bytes=1.5GB',
      '--allow-private-egress',
      '127.0.0.1,10.0.0.0/8,::1',
      '--metrics=off',
      '--json',
    ]);
    expect(config.session.idleSeconds).toBe(900);
    expect(config.session.pingIntervalSeconds).toBeCloseTo(0.2);
    expect(config.sandbox.limits.memoryBytes).toBe(512 * 2 ** 20);
    expect(config.images.maxImageBytes).toBe(1_500_000_000);
    expect(config.outbound.allowPrivateEgress).toEqual(['127.0.0.1/32', '10.0.0.0/8', '::1/128']);
    expect([config.metrics, config.json]).toEqual(['off', true]);
  });

  it('keeps the default limits within a small machine', () => {
    const small = load([], {}, undefined, { machine: { cpus: 1, memoryBytes: 2 * 2 ** 30, openFiles: 1024 } });
    expect(small.sandbox.limits).toMatchObject({ cpu: 1, memoryBytes: 1.5 * 2 ** 30, openFiles: 1024 });
  });

  it.each([
    [['--prot', '1'], '--prot is not an option; did you mean --port?'],
    [['--nonsense-entirely'], '--nonsense-entirely is not an option; --help lists them'],
    [['4100'], '"4100" is not an option; options look like --port 4100'],
    [['--port'], '--port needs a value (port)'],
    [['--port', '--json'], '--port needs a value (port)'],
    [['--port='], '--port must be a whole number, not ""'],
    [['--port', '1', '--port', '2'], '--port is given twice'],
    [['--port', '65536'], '--port must be from 0 to 65535, not 65536'],
    [['--port', '-1'], '--port must be from 0 to 65535, not -1'],
    [['--port', '80.5'], '--port must be a whole number, not "80.5"'],
    [['--port', '4100s'], '--port must be a whole number, not "4100s"'],
    [['--host', 'local host'], '--host must be an IP address such as 127.0.0.1, 0.0.0.0 or ::1'],
    [['--sandbox', 'podman'], '--sandbox must be one of auto, oci, docker, process, not "podman"'],
    [['--json=perhaps'], '--json must be true or false, not "perhaps"'],
    [['--no-json=true'], '--no-json takes no value'],
    [['--version'], '--version is not an option; --help lists them'],
    [['--no-port'], '--no-port is not an option; did you mean --port?'],
    [['--account-id', '12345'], '--account-id must be 12 digits'],
    ...['10/8', '010.0.0.0/8'].flatMap((range): [string[], string][] =>
      ['--trusted-addresses', '--allow-private-egress'].map((flag) => [
        [flag, range],
        `${flag} must be network ranges such as 10.0.0.0/8,::1/128; "${range}" is none`,
      ]),
    ),
    [
      ['--allow-private-egress', '10.0.0.0/33'],
      '--allow-private-egress must be network ranges such as 10.0.0.0/8,::1/128; "10.0.0.0/33" is none',
    ],
    [
      ['--session-max-lifetime-seconds', '9h'],
      '--session-max-lifetime-seconds must be from 0.1 to 28800 seconds, not 32400',
    ],
    [
      ['--session-idle-seconds=2h', '--session-max-lifetime-seconds=1h'],
      'session.idleSeconds must not be longer than session.maxLifetimeSeconds',
    ],
    [['--objects-access-key-id', 'x'], 'objects.accessKeyId and objects.secretAccessKey must be set together'],
    [
      ['--secrets-key', 'x'],
      '--secrets-key is a secret and cannot be given on the command line; set AGENTPLATFORM_SECRETS_KEY',
    ],
  ])('refuses %j by name', (argv, message) => {
    expect(problems(argv)).toEqual([message]);
  });

  it.each([
    [{ AGENTPLATFORM_PROT: '1' }, 'AGENTPLATFORM_PROT is not a setting; did you mean AGENTPLATFORM_PORT?'],
    [{ AGENTPLATFORM_PORT: 'x' }, 'AGENTPLATFORM_PORT must be a whole number, not "x"'],
  ])('refuses the environment %j', (env, message) => {
    expect(problems([], env)).toEqual([message]);
  });

  it("leaves other programs' variables alone, and empty ones", () => {
    expect(problems([], { AGENTPLATFORM_SOMETHING_ELSE: '1', AGENTPLATFORM_PORT: '', PORT: 'x' })).toEqual([]);
  });

  const file = '/srv/.agentplatform/config.json';
  it.each([
    [{ sesion: { idleSeconds: 1 } }, `sesion in ${file} is not a setting; did you mean session?`],
    [
      { session: { idleSecond: 1 } },
      `session.idleSecond in ${file} is not a setting; did you mean session.idleSeconds?`,
    ],
    [{ session: 900 }, `session in ${file} must be an object`],
    [
      { session: { idleSeconds: { a: 1 } } },
      `session.idleSeconds in ${file} must be a number of seconds such as 90, "90s", "15m" or "8h", not {"a":1}`,
    ],
    [{ port: null }, `port in ${file} must be a whole number, not null`],
    [{ data: '/x' }, `data in ${file} has no effect; use --data or AGENTPLATFORM_DATA`],
    ['[1]', `the whole in ${file} must be an object`],
    ['3', `the whole in ${file} must be an object`],
  ])('refuses the file %j', (content, message) => {
    expect(problems([], {}, content)).toEqual([message]);
  });

  it('says where a file that is not JSON is', () => {
    expect(problems([], {}, '{"port": }')[0]).toMatch(/^\/srv\/\.agentplatform\/config\.json cannot be read: /);
  });

  it('lists everything that is wrong at once', () => {
    expect(problems(['--prot', '1', '--host', ' '], { AGENTPLATFORM_REGION: 'Mars' })).toHaveLength(3);
  });

  const TOPIC = 'arn:aws:sns:us-east-1:123456789012:t';

  it('reads several webhooks, each to the next ARN', () => {
    const text = `${TOPIC}=https://a.example/x?a=1,b=2,arn:aws:sns:eu-west-1:1:t.fifo=http://127.0.0.1:8080`;
    expect([...(load(['--notifications-webhooks', text]).notifications.webhooks ?? [])]).toEqual([
      [TOPIC, 'https://a.example/x?a=1,b=2'],
      ['arn:aws:sns:eu-west-1:1:t.fifo', 'http://127.0.0.1:8080'],
    ]);
  });

  it.each([
    ['--models-url', 'http://me:hunter2@models/v1'],
    ['--embeddings-url', 'https://hunter2@models/v1'],
    ['--rerank-url', 'http://:hunter2@models/v1'],
    ['--objects-endpoint', 'http://me:hunter2@store'],
    ['--notifications-webhooks', `${TOPIC}=https://me:hunter2@hook/`],
    ['--notifications-webhooks', `${TOPIC}=https://hook/,arn:aws:sns:us-east-1:1:u=ftp://hunter2`],
    ['--notifications-webhooks', `${TOPIC}=https://[hunter2]/`],
    ['--notifications-webhooks', 'hunter2'],
    ['--models-url', 'file:///hunter2'],
  ])('refuses %s %s and does not repeat it', (flag, value) => {
    const [problem = '', ...more] = problems([flag, value]);
    expect(more).toEqual([]);
    expect(problem).toContain(flag);
    expect(problem).not.toContain('hunter2');
  });

  it('does not repeat an object in the place of a text', () => {
    const [problem = ''] = problems([], {}, { notifications: { webhooks: { [TOPIC]: 'https://hook/hunter2' } } });
    expect(problem).toContain('notifications.webhooks');
    expect(problem).not.toContain('hunter2');
  });

  it('never repeats a value that may hold a secret', () => {
    const all = problems([], {
      AGENTPLATFORM_DATABASE_URL: 'mysql://me:hunter2@host/db',
      AGENTPLATFORM_SECRETS_KEY: 'hunter2',
    });
    expect(all).toHaveLength(2);
    expect(all.join()).not.toContain('hunter2');
  });

  it('answers any command line with a configuration or a ConfigError', () => {
    const flag = fc.constantFrom(...namedSettings(settings).map((one) => `--${one.flag}`), '--', '-', '--=', '--no-');
    fc.assert(
      fc.property(fc.array(fc.oneof(flag, fc.string(), fc.constantFrom('1', 'true', '10.0.0.0/8'))), (argv) => {
        try {
          expect(load(argv).port).toBeTypeOf('number');
        } catch (error) {
          expect(error).toBeInstanceOf(ConfigError);
        }
      }),
    );
  });

  it('answers any JSON in the file with a configuration or a ConfigError', () => {
    const key = fc.constantFrom(...Object.keys(settings), '__proto__', 'constructor', 'x');
    fc.assert(
      fc.property(
        fc.oneof(
          fc.json(),
          fc.dictionary(key, fc.jsonValue()).map((value) => JSON.stringify(value)),
        ),
        (json) => {
          try {
            expect(load([], {}, json).port).toBeTypeOf('number');
          } catch (error) {
            expect(error).toBeInstanceOf(ConfigError);
          }
        },
      ),
    );
    expect(Object.hasOwn(Object.prototype, 'port')).toBe(false);
  });
});

describe('the settings', () => {
  it('have one name each in every source, and defaults that they themselves accept', () => {
    const all = namedSettings(settings);
    expect(new Set(all.map((one) => one.flag)).size).toBeGreaterThanOrEqual(
      all.length - all.filter((one) => one.setting.secret).length,
    );
    expect(new Set(all.map((one) => one.env)).size).toBe(all.length);
    for (const { setting, key } of all) {
      const value = typeof setting.default === 'function' ? setting.default(machine) : setting.default;
      if (value !== undefined) expect(setting.read(value), key).toEqual(value);
      expect(setting.about, key).toMatch(/\.$/);
    }
  });

  it('show their defaults as they are written, also those that have names and values', () => {
    expect(configHelp()).not.toContain('[object');
    const headers = setting('name=value[,…]', { about: 'Headers.', default: { a: 1, b: 2 } }, (value) => value);
    expect(configurationDocs({ headers })).toContain('| name=value[,…] | a=1,b=2 |');
  });

  it('are all in --help', () => {
    const help = configHelp();
    for (const one of namedSettings(settings)) expect(help).toContain(one.flag ? `--${one.flag}` : one.env);
    expect(Math.max(...help.split('\n').map((line) => line.length))).toBeLessThanOrEqual(110);
  });
});

describe('models', () => {
  const local = { model: 'llama3.2', url: 'http://127.0.0.1:11434/v1' };
  const names = (config: Config) => configuredModels(config.models).map(({ name }) => name);

  it('are none, the one of models.url, and those that have names, from the file or the environment', () => {
    expect(names(load([]))).toEqual([]);
    expect(names(load(['--models-url', 'http://127.0.0.1:1/v1']))).toEqual(['default']);
    expect(names(load(['--models-provider', 'anthropic'], {}, { models: { named: { local } } }))).toEqual([
      'default',
      'local',
    ]);
    const named = { claude: { provider: 'anthropic', model: 'claude-x', key: 'k', answersFor: ['us.anthropic.*'] } };
    const env = { AGENTPLATFORM_MODELS_NAMED: JSON.stringify({ local, ...named }) };
    expect(configuredModels(load([], env).models)).toEqual([
      { name: 'local', provider: 'openai', answersFor: [], ...local },
      { name: 'claude', url: 'https://api.anthropic.com/v1', ...named.claude },
    ]);
  });

  it.each([
    [{ local: { url: 'http://127.0.0.1/v1' } }, 'must have local.model'],
    [{ local: { model: 'm' } }, 'must have local.url'],
    [{ local: { ...local, keys: 'hunter2' } }, 'has local.keys, which is none of'],
    [{ local: { ...local, url: 'http://me:hunter2@here' } }, 'has local.url, which must carry no user name'],
    [{ local: { ...local, provider: 'hunter2' } }, 'has local.provider, which must be one of openai'],
    [{ local: { ...local, answersFor: 'hunter2' } }, 'has local.answersFor, which must be a list'],
    [{ local: { ...local, constructor: 'hunter2' } }, 'has local.constructor, which is none of'],
    [{ default: local }, 'must not name a model "default"'],
    ['hunter2', 'must be an object'],
    [['hunter2'], 'must be an object'],
  ])('that are wrong stop the start, and no value is repeated: %j', (named, expected) => {
    const [problem, ...more] = problems([], {}, { models: { named } });
    expect(problem).toContain(expected);
    expect(problem).not.toContain('hunter2');
    expect(more).toEqual([]);
  });

  it('that are named as the default or as memory’s must be there', () => {
    const file = { models: { named: { local } } };
    expect(problems(['--models-default', 'local', '--memory-model', 'none'], {}, file)).toEqual([]);
    expect(problems(['--models-default', 'other', '--memory-model', 'another'], {}, file)).toEqual([
      'models.default must be a model that is set up: local',
      'memory.model must be none or a model that is set up: local',
    ]);
  });
});
