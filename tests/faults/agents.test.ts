import { join } from 'node:path';
import {
  InvokeAgentRuntimeCommand,
  InvokeAgentRuntimeCommandCommand,
  StopRuntimeSessionCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { assumeNewRole, setPolicy } from '../support/iam.ts';
import { invokeJson, invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const folder = join(import.meta.dirname, '../support/probe-agent');
let platform: TestPlatform;
let clients: Clients;
let arn: string;

beforeAll(async () => {
  platform = await startTestPlatform({
    env: {
      AGENTPLATFORM_SANDBOX_LIMITS_MEMORY_BYTES: '192MiB',
      AGENTPLATFORM_SANDBOX_LIMITS_DISK_BYTES: '64MiB',
      AGENTPLATFORM_SANDBOX_START_TIMEOUT_SECONDS: '4',
      AGENTPLATFORM_INVOCATION_TIMEOUT_SECONDS: '3',
      AGENTPLATFORM_INVOCATION_MAX_PAYLOAD_BYTES: '1MiB',
    },
  });
  clients = clientsOf(platform);
  arn = (await deployAgent(platform, clients, { folder })).arn;
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

const text = (session: string, payload: unknown, runtime = arn) => invokeText(clients, runtime, session, payload);
const failure = (call: Promise<unknown>) =>
  call.then(
    () => expect.unreachable('it was expected to fail'),
    (error: unknown) => error as Error & { $metadata?: { httpStatusCode?: number } },
  );

/** The three ways to a session by the ARN of its runtime: how often it was asked, the exit status of a command in it, the status of its end. */
function callsTo({ data }: Clients, runtimeSessionId: string) {
  return {
    invoke: async (agentRuntimeArn: string) => {
      const payload = Buffer.from('{"do":"count"}');
      const { response } = await data.send(
        new InvokeAgentRuntimeCommand({ agentRuntimeArn, runtimeSessionId, payload }),
      );
      return JSON.parse((await response?.transformToString()) ?? '').count;
    },
    command: async (agentRuntimeArn: string) => {
      const body = { command: 'true' };
      const { stream } = await data.send(
        new InvokeAgentRuntimeCommandCommand({ agentRuntimeArn, runtimeSessionId, body }),
      );
      for await (const { chunk } of stream ?? []) if (chunk?.contentStop) return chunk.contentStop.exitCode;
      return undefined;
    },
    stop: async (agentRuntimeArn: string) =>
      (await data.send(new StopRuntimeSessionCommand({ agentRuntimeArn, runtimeSessionId }))).statusCode,
  };
}

describe('an agent that misbehaves', () => {
  it('and exits in a request is named with status and last lines; the neighbour does not notice', async () => {
    const neighbour = sessionId('neighbour');
    await invokeJson(clients, arn, neighbour, { do: 'count' });
    const error = await failure(text(sessionId('dies'), { do: 'die', status: 5 }));
    expect(error).toMatchObject({ name: 'RuntimeClientError', $metadata: { httpStatusCode: 424 } });
    expect(error.message).toMatch(/exited with status 5[\s\S]*about to die/);
    expect((await invokeJson(clients, arn, neighbour, { do: 'count' })).count).toBe(2);
  });

  it('and answers 500 is quoted', async () => {
    const error = await failure(text(sessionId('fails'), { do: 'fail' }));
    expect(error).toMatchObject({ name: 'RuntimeClientError' });
    expect(error.message).toContain('status 500');
    expect(error.message).toContain('failed on purpose');
  });

  it('and sends its caller elsewhere is told of: a caller reaches it by the platform alone', async () => {
    const error = await failure(text(sessionId('redirects'), { do: 'redirect' }));
    expect(error).toMatchObject({ name: 'RuntimeClientError' });
    expect(error.message).toContain('status 302');
  });

  it('and hangs is given up after the time limit', async () => {
    const error = await failure(text(sessionId('hangs'), { do: 'hang' }));
    expect(error).toMatchObject({ name: 'RuntimeClientError' });
    expect(error.message).toContain('did not begin to answer in time');
  });

  it('and dies in the middle of a stream breaks the client’s stream', async () => {
    const answer = await clients.data.send(
      new InvokeAgentRuntimeCommand({
        agentRuntimeArn: arn,
        runtimeSessionId: sessionId('breaks'),
        payload: Buffer.from('{"do":"stream-and-die"}'),
      }),
    );
    await expect(answer.response?.transformToString()).rejects.toThrow();
  });

  it('and dies in an answer that only the end of its connection ends breaks it, too', async () => {
    const call = (session: string, parts: number) => text(sessionId(session), { do: 'plain-and-die', parts });
    expect(await call('whole', 2)).toBe('half whole');
    await expect(call('half', 1)).rejects.toThrow();
  });

  it('and takes too much memory is ended and named so', async () => {
    const neighbour = sessionId('neighbour');
    await invokeJson(clients, arn, neighbour, { do: 'count' });
    const error = await failure(text(sessionId('memory'), { do: 'memory' }));
    expect(error).toMatchObject({ name: 'RuntimeClientError' });
    expect(error.message).toContain('more memory than its limit');
    expect((await invokeJson(clients, arn, neighbour, { do: 'count' })).count).toBe(2);
  });

  it('and fills its disk meets its own limit', async () => {
    expect(await text(sessionId('disk'), { do: 'disk' })).toBe('ENOSPC');
  });

  it('and exits at its start is named with status and last lines', async () => {
    const { arn: broken } = await deployAgent(platform, clients, {
      folder,
      environmentVariables: { PROBE_START: 'exit' },
    });
    const error = await failure(text(sessionId('exits'), { do: 'count' }, broken));
    expect(error).toMatchObject({ name: 'RuntimeClientError' });
    expect(error.message).toMatch(/exited with status 7[\s\S]*no configuration found/);
  });

  it('and never opens its port is named after the start time', async () => {
    const { arn: silent } = await deployAgent(platform, clients, {
      folder,
      environmentVariables: { PROBE_START: 'never-listen' },
    });
    const error = await failure(text(sessionId('silent'), { do: 'count' }, silent));
    expect(error).toMatchObject({ name: 'RuntimeClientError' });
    expect(error.message).toMatch(/did not answer GET \/ping on port 8080 within 4 s/);
  });
});

describe('a caller who misbehaves', () => {
  it('gets the field named for ids that are too short or too long', async () => {
    for (const id of ['short', 'x'.repeat(257)]) {
      const error = await failure(text(id, {}));
      expect(error).toMatchObject({ name: 'ValidationException', fieldList: [{ name: 'runtimeSessionId' }] });
    }
  });

  it('gets ResourceNotFoundException for runtimes and endpoints that there are not', async () => {
    expect(
      await failure(
        text(
          sessionId('x'),
          {},
          arn.replace(/.$/, (last) => (last === 'a' ? 'b' : 'a')),
        ),
      ),
    ).toMatchObject({ name: 'ResourceNotFoundException' });
    expect(await failure(invokeText(clients, arn, sessionId('x'), {}, { qualifier: 'nowhere' }))).toMatchObject({
      name: 'ResourceNotFoundException',
    });
  });

  it('reaches nothing by the ARN of another account, with which its owner’s calls reach the session', async () => {
    const session = sessionId('mine');
    const calls = callsTo(clients, session);
    const foreign = arn.replace(/:\d{12}:/, ':999999999999:');
    expect(await calls.invoke(arn)).toBe(1);
    for (const call of Object.values(calls))
      expect(await failure(call(foreign))).toMatchObject({ name: 'ResourceNotFoundException' });
    // The same calls with the owner's account in the ARN: the session was there all the time, and nothing has touched it.
    expect(await calls.invoke(arn)).toBe(2);
    expect(await calls.command(arn)).toBe(0);
    expect(await calls.stop(arn)).toBe(200);
    expect(await calls.invoke(arn)).toBe(1);
  });

  it('reaches no session without permission, though it knows ARN and id; with permission it does', async () => {
    const session = sessionId('known');
    expect(await callsTo(clients, session).invoke(arn)).toBe(1);
    const statement = { Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource: `${arn}x` };
    const stranger = clientsOf(platform, { credentials: await assumeNewRole(platform, 'stranger', [statement]) });
    try {
      const calls = callsTo(stranger, session);
      for (const call of Object.values(calls))
        expect(await failure(call(arn))).toMatchObject({ name: 'AccessDeniedException' });
      await setPolicy(platform, 'stranger', [{ ...statement, Resource: `${arn}*` }]);
      expect(await calls.invoke(arn)).toBe(2);
      expect(await calls.command(arn)).toBe(0);
      expect(await calls.stop(arn)).toBe(200);
    } finally {
      stranger.close();
    }
  });

  it('gets ValidationException for a payload over the limit', async () => {
    const error = await failure(text(sessionId('large'), { do: 'echo', filler: 'x'.repeat(1_100_000) }));
    expect(error).toMatchObject({ name: 'ValidationException', reason: 'FieldValidationFailed' });
    expect(error.message).toMatch(/body is larger than \d+ bytes/);
  });
});
