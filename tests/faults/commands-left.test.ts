import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InvokeAgentRuntimeCommandCommand, StopRuntimeSessionCommand } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { execHelpers } from '../../packages/platform/src/kernel/sandbox/testing/exec-helpers.ts';
import { until } from '../../packages/platform/src/kernel/sandbox/testing/until.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { ENGINES, type Engine } from '../support/engines.ts';
import { invokeJson, invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { StreamSigner } from '../support/websocket.ts';

const folder = join(import.meta.dirname, '../support/probe-agent');
const FLOOD = 'yes flood & yes flood >&2';
const SILENT = 'sleep 1234';
const DEAF = 'echo deaf; trap "" TERM HUP INT PIPE; while :; do echo more; sleep 0.01; done';

describe.each(ENGINES.filter(({ lacking }) => lacking === undefined))('with provider $name', ({ name, open }) => {
  let engine: Engine;
  let dataDir: string;
  let platform: TestPlatform;
  let clients: Clients;
  let arn: string;
  let session: string;

  beforeAll(async () => {
    engine = await open();
    dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-left-'));
    platform = await startTestPlatform({ dataDir, args: engine.args });
    clients = clientsOf(platform);
    arn = (await deployAgent(platform, clients, { folder })).arn;
  });
  afterAll(async () => {
    clients?.close();
    await platform?.dispose();
    await engine?.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  const helpers = (): Promise<string[]> => execHelpers(join(dataDir, 'sandboxes'));
  /** Processes of commands in the sandbox. */
  const inside = async (): Promise<string[]> =>
    (await invokeText(clients, arn, session, { do: 'processes' })).match(/sleep 1234|yes flood/g) ?? [];
  /** As many commands have begun; the daemon of Docker keeps nothing on the host that stands for one. */
  const begun = (commands: number): Promise<void> =>
    until(async () => (name === 'docker' ? await inside() : await helpers()).length >= commands, 60_000);

  async function newSession(): Promise<void> {
    session = sessionId('left');
    await invokeJson(clients, arn, session, { do: 'count' });
  }

  /** Sends a command and reads `events` of its answer, then goes, or none, until the signal. */
  async function client(command: string, signal: AbortSignal, events: number): Promise<void> {
    const body = { command, timeout: 3600 };
    const call = new InvokeAgentRuntimeCommandCommand({ agentRuntimeArn: arn, runtimeSessionId: session, body });
    const { stream } = await clients.data.send(call, { abortSignal: signal });
    // Without a word, and without a look.
    if (events === 0) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    let read = 0;
    for await (const _ of stream ?? []) if (++read === events) break;
  }

  describe('a command whose client leaves', () => {
    it('at 25 moments leaves nothing on the host, and nothing of the command in the sandbox', async () => {
      await newSession();
      const leave = Array.from({ length: 25 }, () => new AbortController());
      const calls = leave.map((controller, n) => {
        const command = [SILENT, FLOOD, DEAF, `cat; ${SILENT}`, `sleep 1234 & ${FLOOD}`][n % 5] ?? SILENT;
        const call = client(command, controller.signal, n % 3).catch(() => undefined);
        if (n < 5) setImmediate(() => controller.abort());
        return call;
      });
      // The control: those that stay are there, with what stands for them.
      await begun(15);
      for (const controller of leave) controller.abort();
      await Promise.all(calls);
      await until(async () => (await helpers()).length === 0, 60_000);
      await until(async () => (await inside()).length === 0, 60_000);
      await clients.data.send(new StopRuntimeSessionCommand({ agentRuntimeArn: arn, runtimeSessionId: session }));
      expect(await helpers()).toEqual([]);
    });

    it('because the server was killed is ended by the next one', async () => {
      await newSession();
      for (const command of [FLOOD, SILENT, DEAF])
        void client(command, new AbortController().signal, 0).catch(() => undefined);
      const shell = await new StreamSigner(platform).open(
        { arn, path: 'ws/shells', query: { shellId: 'one' } },
        session,
      );
      shell.socket.on('error', () => undefined);
      await begun(name === 'docker' ? 3 : 5);
      await platform.end('SIGKILL');
      clients.close();
      platform = await startTestPlatform({ dataDir, args: engine.args });
      clients = clientsOf(platform);
      await until(async () => (await helpers()).length === 0, 60_000);
      // The session goes on.
      expect(await invokeJson(clients, arn, session, { do: 'count' })).toMatchObject({ count: 2 });
      await until(async () => (await inside()).length === 0, 60_000);
    });

    it('does not keep the server from ending, read or not', async () => {
      await newSession();
      for (const command of [FLOOD, SILENT, DEAF])
        void client(command, new AbortController().signal, 0).catch(() => undefined);
      const shell = await new StreamSigner(platform).open(
        { arn, path: 'ws/shells', query: { shellId: 'one' } },
        session,
      );
      shell.socket.pause();
      await begun(name === 'docker' ? 3 : 5);
      expect(await platform.end('SIGTERM')).toBe(0);
      expect(await helpers()).toEqual([]);
      clients.close();
    });
  });
});

for (const { name, lacking } of ENGINES) if (lacking) it(`with provider ${name}`, (context) => context.skip(lacking));
