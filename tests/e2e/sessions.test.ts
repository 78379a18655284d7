import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { InvokeAgentRuntimeCommand, StopRuntimeSessionCommand } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeJson, invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const folder = join(import.meta.dirname, '../support/probe-agent');
let platform: TestPlatform;
let clients: Clients;
let arn: string;

beforeAll(async () => {
  platform = await startTestPlatform({
    env: {
      AGENTPLATFORM_SESSION_IDLE_SECONDS: '4',
      AGENTPLATFORM_SESSION_MAX_LIFETIME_SECONDS: '12',
      AGENTPLATFORM_SESSION_PING_INTERVAL_SECONDS: '0.5',
      AGENTPLATFORM_SANDBOX_LIMITS_MEMORY_BYTES: '256MiB',
      AGENTPLATFORM_SANDBOX_LIMITS_DISK_BYTES: '64MiB',
      AGENTPLATFORM_SANDBOX_START_TIMEOUT_SECONDS: '20',
    },
  });
  clients = clientsOf(platform);
  arn = (await deployAgent(platform, clients, { folder })).arn;
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

const ask = (session: string, payload: unknown) => invokeJson(clients, arn, session, payload);
const text = (session: string, payload: unknown) => invokeText(clients, arn, session, payload);

/** Why a session ended, as the server's log says; undefined while it lives. */
function endOf(session: string): unknown {
  const lines = platform
    .log()
    .split('\n')
    .filter((line) => line.includes('session ended'));
  return lines.map((line) => JSON.parse(line)).find(({ sessionId }) => sessionId === session)?.reason;
}

describe('sessions in real sandboxes', () => {
  it('keep memory under one id and share nothing with another', async () => {
    const [one, two] = [sessionId('one'), sessionId('two')];
    expect((await ask(one, { do: 'count' })).count).toBe(1);
    expect((await ask(one, { do: 'count' })).count).toBe(2);
    expect((await ask(two, { do: 'count' })).count).toBe(1);
    await text(one, { do: 'write', text: 'of one' });
    expect(await text(one, { do: 'read' })).toBe('of one');
    expect(await text(two, { do: 'read' })).toBe('nothing');
  });

  it('start one sandbox for twenty first calls at once', async () => {
    const session = sessionId('at-once');
    const counts = await Promise.all(Array.from({ length: 20 }, () => ask(session, { do: 'count' })));
    expect(counts.map((c) => Number(c.count)).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 20 }, (_, i) => i + 1),
    );
  });

  it('give the agent a second request while it answers the first', async () => {
    const session = sessionId('beside');
    const first = await clients.data.send(
      new InvokeAgentRuntimeCommand({
        agentRuntimeArn: arn,
        runtimeSessionId: session,
        payload: Buffer.from('{"do":"stream","parts":100000,"everyMs":20}'),
      }),
    );
    const parts = (first.response as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
    await parts.next();
    expect((await ask(session, { do: 'count' })).count).toBe(1);
    // It is the first that goes on still.
    expect((await parts.next()).done).toBe(false);
    await parts.return?.();
  });

  it('end by StopRuntimeSession with memory and disk gone; a call during the teardown gets a fresh sandbox', async () => {
    const session = sessionId('stopped');
    await ask(session, { do: 'count' });
    await text(session, { do: 'write', text: 'before' });
    const stopping = clients.data.send(
      new StopRuntimeSessionCommand({ agentRuntimeArn: arn, runtimeSessionId: session }),
    );
    // Calls all through the teardown: those before it see the old memory, those after it a fresh sandbox. Only one that is with
    // the agent at the very moment of the stop is cut, and told so.
    const during = Array.from({ length: 10 }, async (_, i) => {
      await sleep(i * 20);
      return ask(session, { do: 'count' }).catch((error: Error) => error.message);
    });
    expect((await stopping).runtimeSessionId).toBe(session);
    for (const answer of await Promise.all(during)) {
      if (typeof answer === 'string')
        expect(answer).toContain('The session ended (stopped) before the agent answered.');
      else expect(Number(answer.count)).toBeGreaterThan(0);
    }
    expect(Number((await ask(session, { do: 'count' })).count)).toBeLessThan(12);
    expect(await text(session, { do: 'read' })).toBe('nothing');
    await expect(
      clients.data.send(
        new StopRuntimeSessionCommand({ agentRuntimeArn: arn, runtimeSessionId: sessionId('unknown') }),
      ),
    ).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
  });

  it('end after the idle time, but not while HealthyBusy or answering', async () => {
    const [idle, busy, answering] = [sessionId('idle'), sessionId('busy'), sessionId('answering')];
    await Promise.all([ask(idle, { do: 'count' }), ask(busy, { do: 'count' }), ask(answering, { do: 'count' })]);
    await text(busy, { do: 'busy' });
    await text(answering, { do: 'stream', parts: 7, everyMs: 1000 });
    expect((await ask(answering, { do: 'count' })).count).toBe(2);
    expect((await ask(busy, { do: 'count' })).count).toBe(2);
    expect((await ask(idle, { do: 'count' })).count).toBe(1);
  });

  it('end after their longest life even when in use', async () => {
    const session = sessionId('lifetime');
    let last = 0;
    let restarted = false;
    for (const deadline = Date.now() + 25_000; Date.now() < deadline && !restarted; await sleep(1000)) {
      const count = Number((await ask(session, { do: 'count' })).count);
      restarted = count <= last;
      last = count;
    }
    expect(restarted).toBe(true);
  });

  it('end when the health check fails, and when the agent exits', async () => {
    const [sick, dead] = [sessionId('sick'), sessionId('dead')];
    await ask(sick, { do: 'count' });
    await text(sick, { do: 'sick' });
    await ask(dead, { do: 'count' });
    await expect(text(dead, { do: 'die' })).rejects.toMatchObject({ name: 'RuntimeClientError' });
    expect((await ask(dead, { do: 'count' })).count).toBe(1);
    // Not by any of the other ends that would come in time.
    await expect.poll(() => endOf(sick), { timeout: 10_000 }).toBe('unhealthy');
    expect(endOf(dead)).toBe('exited');
    expect((await ask(sick, { do: 'count' })).count).toBe(1);
  });

  it('stream parts as they come', async () => {
    const answer = await clients.data.send(
      new InvokeAgentRuntimeCommand({
        agentRuntimeArn: arn,
        runtimeSessionId: sessionId('stream'),
        payload: Buffer.from('{"do":"stream","parts":3,"everyMs":100}'),
      }),
    );
    expect(answer.contentType).toBe('text/event-stream');
    const arrivals: string[] = [];
    for await (const chunk of answer.response as AsyncIterable<Uint8Array>)
      arrivals.push(Buffer.from(chunk).toString());
    expect(arrivals.length).toBeGreaterThan(1);
    expect(arrivals.join('')).toBe('data: part 1\n\ndata: part 2\n\ndata: part 3\n\n');
  });
});
