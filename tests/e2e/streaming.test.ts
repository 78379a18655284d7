import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { InvokeAgentRuntimeCommand } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

/**
 * Answers each part of a request as soon as it is there, and at the end how many bytes there were; by content type it says only their
 * number, sends something large twice, never answers, or says how many requests it has not answered and how many of those have lost their client.
 */
const agent = `
import { createServer } from 'node:http';
const seen = { unanswered: 0, lost: 0 };
createServer((request, response) => {
  if (request.method === 'GET') return void response.end('{"status":"Healthy"}');
  const type = request.headers['content-type'];
  if (type === 'test/seen') return void request.resume().on('end', () => response.end(JSON.stringify(seen)));
  if (type === 'test/never') {
    seen.unanswered += 1;
    response.once('close', () => (seen.lost += 1));
    return void request.resume();
  }
  let bytes = 0;
  if (type === 'test/size') {
    request.on('data', (part) => (bytes += part.length)).on('end', () => response.end(String(bytes)));
    return;
  }
  if (type === 'test/large') {
    return void request.setEncoding('utf8').once('data', (text) => {
      const [answer, size] = text.split(' ');
      const event = 'data: ' + 'x'.repeat(size - 8) + '\\n\\n';
      response.writeHead(200, { 'content-type': answer }).write(event);
      setTimeout(() => response.end(event), 200);
    });
  }
  response.writeHead(200, { 'content-type': 'text/plain' }).flushHeaders();
  request.on('data', (part) => {
    bytes += part.length;
    response.write('[' + part + ']');
  });
  request.on('end', () => response.end('=' + bytes));
}).listen(8080);
`;

let folder: string;
let platform: TestPlatform;
let clients: Clients;
let arn: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'streaming-agent-'));
  await writeFile(join(folder, 'index.mjs'), agent);
  platform = await startTestPlatform();
  clients = clientsOf(platform);
  arn = (await deployAgent(platform, clients, { folder })).arn;
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await rm(folder, { recursive: true, force: true });
});

async function invoke(payload: Readable): Promise<AsyncIterator<Buffer>> {
  const { response } = await clients.data.send(
    new InvokeAgentRuntimeCommand({ agentRuntimeArn: arn, runtimeSessionId: sessionId('both'), payload }),
  );
  return (response as Readable)[Symbol.asyncIterator]();
}

describe('an invocation through the AWS SDK', () => {
  it('streams both ways at once: the agent answers a part before the next one is sent', async () => {
    const payload = new PassThrough();
    payload.write('one');
    const answer = await invoke(payload);
    expect(String((await answer.next()).value)).toBe('[one]');
    payload.write('two');
    expect(String((await answer.next()).value)).toBe('[two]');
    payload.end();
    expect(String((await answer.next()).value)).toBe('=6');
    expect((await answer.next()).done).toBe(true);
  });

  it('that is broken off before the agent answers is broken off at the agent, and the session goes on', async () => {
    const runtimeSessionId = sessionId('left');
    const call = (contentType: string, abortSignal?: AbortSignal) =>
      clients.data.send(
        new InvokeAgentRuntimeCommand({
          agentRuntimeArn: arn,
          runtimeSessionId,
          contentType,
          payload: Buffer.from('x'),
        }),
        abortSignal ? { abortSignal } : {},
      );
    const seen = async () => JSON.parse((await (await call('test/seen')).response?.transformToString()) ?? '');
    const leaving = new AbortController();
    const waiting = expect(call('test/never', leaving.signal)).rejects.toThrow();
    await expect.poll(seen, { timeout: 30_000, interval: 200 }).toEqual({ unanswered: 1, lost: 0 });
    leaving.abort();
    await waiting;
    // Its counters are still there: the sandbox is the same.
    await expect.poll(seen, { timeout: 30_000, interval: 200 }).toEqual({ unanswered: 1, lost: 1 });
  });

  it('takes 100,000,000 bytes, the limit of an unchanged configuration, and refuses one more', async () => {
    const size = async (bytes: number) => {
      const { response } = await clients.data.send(
        new InvokeAgentRuntimeCommand({
          agentRuntimeArn: arn,
          runtimeSessionId: session,
          contentType: 'test/size',
          payload: Readable.from(parts(bytes), { objectMode: false }),
        }),
      );
      return response?.transformToString();
    };
    const session = sessionId('large');
    expect(await size(100_000_000)).toBe('100000000');
    await expect(size(100_000_001)).rejects.toMatchObject({
      name: 'ValidationException',
      reason: 'FieldValidationFailed',
      message: expect.stringMatching(/larger than 100000000 bytes/),
    });
    expect(await size(1)).toBe('1');
  });

  it('is broken off in an event of more than 10 MiB, the limit of an unchanged configuration', async () => {
    const answered = async (type: string, bytes: number): Promise<number | undefined> => {
      const { response } = await clients.data.send(
        new InvokeAgentRuntimeCommand({
          agentRuntimeArn: arn,
          runtimeSessionId: sessionId('events'),
          contentType: 'test/large',
          payload: Buffer.from(`${type} ${bytes}`),
        }),
      );
      return (await response?.transformToByteArray())?.length;
    };
    const limit = 10 * 2 ** 20;
    expect(await answered('text/event-stream', limit)).toBe(2 * limit);
    await expect(answered('text/event-stream;charset=utf-8', limit + 2 ** 20)).rejects.toThrow();
    expect(await answered('application/octet-stream', limit + 2 ** 20)).toBe(2 * (limit + 2 ** 20));
    expect(platform.log()).toContain(`an event of the answer is larger than ${limit} bytes`);
  });
});

/** So many bytes, as they are wanted: no more than one part of them is in memory. */
function* parts(bytes: number): Generator<Buffer> {
  const part = Buffer.alloc(1024 * 1024, 'x');
  for (let left = bytes; left > 0; left -= part.length) yield part.subarray(0, Math.min(left, part.length));
}
