import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ErrorKind, ownErrors } from '@agentplatform/contract';
import {
  BedrockAgentCoreControlClient,
  CreateWorkloadIdentityCommand,
  GetGatewayCommand,
  ListGatewaysCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LEAN_PLATFORM } from '../../../scripts/test/lean-platform.ts';
import { newUser } from '../../../tests/support/iam.ts';
import { readCredentials } from '../../../tests/support/platform-process.ts';
import { loadSettings } from './config/load.ts';
import { integer } from './config/setting.ts';
import { settings } from './config.ts';
import { notImplemented } from './not-implemented.ts';
import type { Kernel } from './open-kernel.ts';
import { createPlatform, type Platform } from './platform.ts';
import { declareService, type ServiceModule, settingsOf } from './service-module.ts';
import { services as all } from './services.ts';

/** Without the service whose operations the toy serves. */
const services = all.filter(({ name }) => name !== 'gateway');

/** What a new service writes in its folder; the list of services gets one entry, and nothing else changes. */
const lives: string[] = [];
let kernel: Kernel;
const toyErrors = {
  ToyBrokenException: {
    status: 418,
    fault: 'client',
    origin: 'platform',
    meaning: 'The toy is broken.',
    remedy: 'Glue it.',
  },
} as const satisfies Record<string, ErrorKind>;
const module: ServiceModule<'toy', 'ListGateways' | 'GetGateway', 'identity'> = {
  operations: ['ListGateways', 'GetGateway'],
  migrations: [{ id: 'toy/0001', sql: 'CREATE TABLE toys (name text PRIMARY KEY, at bigint NOT NULL)' }],
  sinks: {
    toy: {
      parse: (data) => String(data),
      apply: async (tx, records) => {
        for (const { data } of records) await tx.execute('INSERT INTO toys VALUES ($1, 0)', [data]);
      },
    },
  },
  retention: (database, { auditMs }) => [
    { name: 'toys', keepMs: auditMs, forget: (before) => database.execute('DELETE FROM toys WHERE at > $1', [before]) },
  ],
  needs: ['identity'],
  create: (made: Kernel, { identity }) => {
    kernel = made;
    const { journal, database, accountId, config, calls } = kernel;
    return {
      metrics: [{ name: 'toys', help: 'Toys so far.', read: () => 7 }],
      operations: {
        GetGateway: {
          resource: ({ gatewayIdentifier }) =>
            `arn:aws:bedrock-agentcore:us-east-1:${accountId}:gateway/${gatewayIdentifier}`,
          async handle({ gatewayIdentifier: name }, ctx) {
            if (name.startsWith('broken')) throw ownErrors(toyErrors).ToyBrokenException('It fell down.');
            const caller = { principal: ctx.principal, request: ctx };
            // Longer names are of gateways only: the check of the operation that is called says so.
            await calls.call('GetWorkloadIdentity', { name: name.replace(/^bad.*/, '/') }, caller);
            return { ...gateway(name), gatewayArn: `arn:aws:bedrock-agentcore:us-east-1:${accountId}:gateway/${name}` };
          },
        },
        ListGateways: {
          resource: () => '*',
          async handle() {
            await journal.append('toy', identity.arnOf(accountId, 'toy'));
            await journal.flush();
            const items = await database.query<{ name: string }>('SELECT name FROM toys');
            return { items: items.map(({ name }) => gateway(name)) };
          },
        },
      },
      routes: [
        {
          name: 'toy',
          routes: [
            {
              method: 'GET',
              url: '/toy',
              open: 'everybody',
              because: 'it is a toy',
              answer: () => ({ size: 'toy' in config ? config.toy : undefined }),
            },
          ],
        },
      ],
      port: undefined,
      start: async () => void lives.push('started'),
      stop: async () => void lives.push('stopped'),
    };
  },
};
const toy = declareService({
  name: 'toy',
  errors: toyErrors,
  settings: { toy: { size: integer({ about: 'Size of a toy.', default: 3, min: 1, max: 9 }) } },
  load: async () => ({ module }),
});

const gateway = (name: string) => ({
  gatewayId: 'toy-0123456789',
  name,
  status: 'READY' as const,
  createdAt: new Date(0),
  updatedAt: new Date(0),
  authorizerType: 'NONE' as const,
});

describe('a service that is new', () => {
  let data: string;
  let platform: Platform;
  let ready: Awaited<ReturnType<Platform['listen']>>;
  let endpoint: string;
  let credentials: { accessKeyId: string; secretAccessKey: string };

  beforeAll(async () => {
    data = await mkdtemp(join(tmpdir(), 'agentplatform-toy-'));
    const tree = { ...settings, ...settingsOf([toy]) };
    const config = loadSettings(
      tree,
      ['--data', data, '--port', '0', '--sandbox', 'process', '--toy-size', '5'],
      LEAN_PLATFORM,
    );
    platform = await createPlatform(config, { restarts: 0 }, [...services, toy]);
    ready = await platform.listen();
    endpoint = ready.endpoint;
    credentials = await readCredentials(ready.credentialsFile);
  });
  afterAll(async () => {
    await rm(data, { recursive: true, force: true });
  });

  it('serves its operations to an SDK, with its tables, its records and the port of another service', async () => {
    const client = new BedrockAgentCoreControlClient({ endpoint, region: 'us-east-1', credentials });
    const { items } = await client.send(new ListGatewaysCommand({}));
    expect(items?.map(({ name }) => name)).toEqual([expect.stringMatching(/workload-identity\/toy$/)]);
    client.destroy();
  });

  it('calls another service as its caller, who needs the right and is on the record', async () => {
    const test = { ready, credentials };
    const may = (Action: string) => ({ Effect: 'Allow', Action: `bedrock-agentcore:${Action}`, Resource: '*' });
    const one = await newUser(test, 'one', [may('GetGateway')]);
    const both = await newUser(test, 'both', [may('GetGateway'), may('GetWorkloadIdentity')]);
    const as = async (keys: typeof credentials, gatewayIdentifier: string): Promise<unknown> => {
      const client = new BedrockAgentCoreControlClient({
        endpoint,
        region: 'us-east-1',
        credentials: keys,
        maxAttempts: 1,
      });
      return client.send(new GetGatewayCommand({ gatewayIdentifier })).finally(() => client.destroy());
    };
    const root = new BedrockAgentCoreControlClient({ endpoint, region: 'us-east-1', credentials });
    await root.send(new CreateWorkloadIdentityCommand({ name: 'known-0123456789' }));
    root.destroy();
    expect(await as(both, 'known-0123456789')).toMatchObject({ name: 'known-0123456789' });
    await expect(as(one, 'known-0123456789')).rejects.toMatchObject({
      name: 'AccessDeniedException',
      message: expect.stringContaining('bedrock-agentcore:GetWorkloadIdentity'),
    });
    await expect(as(both, 'broken-0123456789')).rejects.toMatchObject({
      ...{ name: 'ToyBrokenException', message: 'It fell down.', $metadata: { httpStatusCode: 418 } },
    });
    await expect(as(both, 'other-0123456789')).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
    await expect(as(both, 'bad-0123456789')).rejects.toMatchObject({ name: 'ValidationException' });

    await kernel.journal.flush();
    const rows = await kernel.database.query<{ who: string; status: number; source_ip: string }>(
      `SELECT principal AS who, status, source_ip FROM audit WHERE operation = 'GetWorkloadIdentity' ORDER BY at, status`,
    );
    expect(rows.map(({ who, status }) => `${who.split('/').at(-1)} ${status}`).sort()).toEqual([
      'both 200',
      'both 400',
      'both 404',
      'one 403',
    ]);
    expect(rows.every(({ source_ip }) => source_ip === '127.0.0.1')).toBe(true);
    expect(await (await fetch(`${endpoint}/metrics`)).text()).toMatch(/operation="GetWorkloadIdentity"/);
  });

  it('has its own routes, settings and metrics', async () => {
    expect(await (await fetch(`${endpoint}/toy`)).json()).toEqual({ size: { size: 5 } });
    expect(await (await fetch(`${endpoint}/metrics`)).text()).toMatch(/^agentplatform_toys 7$/m);
  });

  it('is started and stopped with the others', async () => {
    expect(lives).toEqual(['started']);
    await platform.close();
    expect(lives).toEqual(['started', 'stopped']);
  });
});

it('is refused where it needs what comes later, or serves what another serves', async () => {
  const at = async (list: Parameters<typeof createPlatform>[2]): Promise<unknown> => {
    const data = await mkdtemp(join(tmpdir(), 'agentplatform-toy-'));
    try {
      const config = loadSettings(settings, ['--data', data, '--port', '0', '--sandbox', 'process'], LEAN_PLATFORM);
      return await createPlatform(config, { restarts: 0 }, list).then(
        async (platform) => platform.close(),
        (error: unknown) => error,
      );
    } finally {
      await rm(data, { recursive: true, force: true });
    }
  };
  expect(await at([toy, ...services])).toMatchObject({
    message: 'service toy needs identity, which comes later or not at all',
  });
  const twin = declareService({
    name: 'twin',
    load: async () => ({ module: { ...module, migrations: [], sinks: {} } }),
  });
  expect(await at([...services, toy, twin])).toMatchObject({
    message: 'GetGateway is served twice, the second time by twin',
  });
  const rival = declareService({
    name: 'rival',
    load: async () => ({
      module: {
        create: () => ({
          operations: {},
          port: undefined,
          sessionKind: { name: 'runtime', planOf: async () => undefined, explain: () => undefined },
        }),
      },
    }),
  });
  expect(await at([...services, rival])).toMatchObject({
    message: 'the kind of sessions runtime is declared twice, the second time by rival',
  });
  const having = (own: object) =>
    declareService({
      name: 'rival',
      load: async () => ({ module: { create: () => ({ operations: {}, port: undefined, ...own }) } }),
    });
  expect(await at([...services, having({ operations: { GetGateway: {} } })])).toMatchObject({
    message: 'rival serves GetGateway, which its module does not declare',
  });
  const gauge = { name: 'sessions', help: 'Mine.', read: () => 1 };
  expect(await at([...services, having({ metrics: [gauge] })])).toMatchObject({
    message: "the metric agentplatform_sessions of rival is another's already",
  });
  expect(await at([...services, toy, { ...having({}), errors: toyErrors }])).toMatchObject({
    message: 'the error ToyBrokenException is declared twice, the second time by rival',
  });
  expect(await at(services)).toBeUndefined();
});

it('what no module declares is left of the contract', async () => {
  const [left, withToy] = [await notImplemented(services), await notImplemented([...services, toy])];
  expect(left).toEqual(expect.arrayContaining(['CreateGateway', 'GetGateway', 'CreatePaymentManager']));
  expect(left).not.toContain('CreateMemory');
  expect(left.filter((name) => !withToy.includes(name))).toEqual(['GetGateway', 'ListGateways']);
});
