import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Boto, botoOf, codeDefinition, python, readyRuntime, textOf } from '../support/boto3.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const probe = join(import.meta.dirname, '../support/probe-agent');
/** Two sandboxes of it can be promised their memory together, not three. */
const MEMORY_BYTES = Math.floor(totalmem() * 0.3);
let platform: TestPlatform;
let clients: Clients;
let boto: Boto;
let definition: object;

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--sandbox-limits-memory-bytes', String(MEMORY_BYTES)] });
  clients = clientsOf(platform);
  boto = botoOf(platform);
  definition = await codeDefinition(platform, clients, probe);
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

const create = (name: string, more: object) =>
  boto.control(['CreateAgentRuntime', { agentRuntimeName: name, ...definition, ...more }]);
const invocation = (agentRuntimeArn: string, runtimeSessionId: string, payload: object): [string, object] => [
  'InvokeAgentRuntime',
  {
    agentRuntimeArn,
    runtimeSessionId,
    payload: { $bytes: Buffer.from(JSON.stringify(payload)).toString('base64') },
  },
];

describe.skipIf(!python)('an agent that listens where it likes', () => {
  it('is invoked and pinged at its own port and path, also after an update that moves it', async () => {
    const at = (port: number, path: string) => ({
      environmentVariables: { PORT: String(port) },
      protocolConfiguration: { serverProtocol: 'HTTP', port, path },
    });
    const [created] = await create('elsewhere', at(9876, '/api/chat%20now'));
    const runtime = await readyRuntime(boto, created);
    expect(runtime.protocolConfiguration).toEqual({ serverProtocol: 'HTTP', port: 9876, path: '/api/chat%20now' });
    const [answer] = await boto.data(invocation(runtime.agentRuntimeArn, randomUUID(), { do: 'url' }));
    expect(textOf(answer?.output.response)).toBe('/api/chat%20now');

    const { agentRuntimeId } = runtime;
    const [updated] = await boto.control(['UpdateAgentRuntime', { agentRuntimeId, ...definition, ...at(8000, '/') }]);
    await readyRuntime(boto, updated);
    const [moved] = await boto.data(invocation(runtime.agentRuntimeArn, randomUUID(), { do: 'url' }));
    expect(textOf(moved?.output.response)).toBe('/');
  });

  it('is refused the port and the path that are taken', async () => {
    const [port] = await create('reserved', { protocolConfiguration: { serverProtocol: 'HTTP', port: 8443 } });
    const [path] = await create('reserved', { protocolConfiguration: { serverProtocol: 'HTTP', path: '/ping' } });
    expect([port?.error, path?.error]).toMatchObject([
      { code: 'ValidationException', fields: ['protocolConfiguration.port'] },
      { code: 'ValidationException', fields: ['protocolConfiguration.path'] },
    ]);
  });
});

describe.skipIf(!python)('memory that is promised', () => {
  it('is free for each session that starts, and nobody starts without', async () => {
    const most = Math.floor(MEMORY_BYTES / 2 ** 20);
    const [tooMuch] = await create('greedy', { resourceConfigurations: [{ minimumMemoryInMiB: most + 1 }] });
    expect(tooMuch?.error).toMatchObject({
      code: 'ValidationException',
      fields: ['resourceConfigurations[0].minimumMemoryInMiB'],
    });

    const resourceConfigurations = [{ minimumMemoryInMiB: most }];
    const [created] = await create('large', { resourceConfigurations });
    const runtime = await readyRuntime(boto, created);
    expect(runtime.resourceConfigurations).toEqual(resourceConfigurations);
    const arn = runtime.agentRuntimeArn;
    const [one, two, three] = [randomUUID(), randomUUID(), randomUUID()];
    const count = (session: string) => invocation(arn, session, { do: 'count' });
    const [first, second, third] = await boto.data(count(one), count(two), count(three));
    expect([first?.error, second?.error]).toEqual([undefined, undefined]);
    expect(third?.error).toMatchObject({ code: 'ThrottlingException', message: expect.stringContaining('memory') });

    const [, again] = await boto.data(
      ['StopRuntimeSession', { agentRuntimeArn: arn, runtimeSessionId: one }],
      count(three),
    );
    expect(again?.error).toBeUndefined();
    const [small] = await create('small', {});
    const { agentRuntimeArn } = await readyRuntime(boto, small);
    const [unasked] = await boto.data(invocation(agentRuntimeArn, randomUUID(), { do: 'count' }));
    expect(unasked?.error).toBeUndefined();
  });
});

describe.skipIf(!python)('a warm-up hook', () => {
  const hook = (path: string, port?: number) => ({
    hooksConfiguration: {
      build: { warmup: { action: { httpPost: { path, ...(port === undefined ? {} : { port }) } } } },
    },
  });

  it('has been asked once, before any session, in each sandbox', async () => {
    const [created] = await create('warm', hook('/warm'));
    const runtime = await readyRuntime(boto, created);
    expect(runtime.hooksConfiguration).toEqual(hook('/warm').hooksConfiguration);
    // Where none are kept ready a session's own sandbox is asked before its first request.
    const [cold] = await boto.data(invocation(runtime.agentRuntimeArn, randomUUID(), { do: 'warmed' }));
    expect(JSON.parse(textOf(cold?.output.response)).warmed).toEqual(['POST']);
  });

  it('has its effect in the sandbox that stands ready from the build on, which is the first session’s', async () => {
    const pooling = await startTestPlatform({ args: ['--pool-max-per-version', '1'] });
    const theirs = clientsOf(pooling);
    try {
      const own = botoOf(pooling);
      const [created] = await own.control([
        'CreateAgentRuntime',
        { agentRuntimeName: 'warm', ...(await codeDefinition(pooling, theirs, probe)), ...hook('/warm') },
      ]);
      const { agentRuntimeArn } = await readyRuntime(own, created);
      const sandboxes = () => readdir(join(pooling.dataDir, 'sandboxes'));
      const built = await sandboxes();
      expect(built).toHaveLength(1);
      const session = randomUUID();
      const [answer, host] = await own.data(
        invocation(agentRuntimeArn, session, { do: 'warmed' }),
        invocation(agentRuntimeArn, session, { do: 'file', path: '/proc/sys/kernel/hostname' }),
      );
      expect(JSON.parse(textOf(answer?.output.response)).warmed).toEqual(['POST']);
      expect(JSON.parse(textOf(host?.output.response)).text.trim()).toBe(built[0]);
    } finally {
      theirs.close();
      await pooling.dispose();
    }
  });

  it('that fails fails the build, with what the agent said', async () => {
    const [refused, silent, gone] = await boto.control(
      ...(
        [
          ['says_no', { ...hook('/warm'), environmentVariables: { PROBE_WARMING: '500' } }],
          ['elsewhere_port', hook('/warm', 11_111)],
          ['exits', { ...hook('/warm'), environmentVariables: { PROBE_WARMING: 'exit' } }],
        ] as [string, object][]
      ).map(([agentRuntimeName, more]): [string, object] => [
        'CreateAgentRuntime',
        { agentRuntimeName, ...definition, ...more },
      ]),
    );
    const failed = (message: string) => ({
      code: 'ValidationException',
      fields: ['hooksConfiguration.build.warmup'],
      message: expect.stringContaining(message),
    });
    expect(refused?.error).toMatchObject(failed('POST /warm on port 8080 answered 500: as it was told'));
    expect(refused?.error?.message).toContain('the warm-up was asked');
    expect(silent?.error).toMatchObject(failed('POST /warm on port 11111 failed'));
    expect(gone?.error).toMatchObject(failed('exited with status 9'));
    const [listed] = await boto.control(['ListAgentRuntimes', {}]);
    const names = listed?.output.agentRuntimes.map((one: { agentRuntimeName: string }) => one.agentRuntimeName);
    expect(names).not.toContain('says_no');
  });

  it('cannot be where the agent serves something else', async () => {
    const [ping] = await create('taken', hook('/ping'));
    const [invocations] = await create('taken', hook('/invocations', 8080));
    expect([ping?.error?.fields, invocations?.error?.fields]).toEqual([
      ['hooksConfiguration.build.warmup.action.httpPost.path'],
      ['hooksConfiguration.build.warmup.action.httpPost.path'],
    ]);
  });
});
