import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, type Readable } from 'node:stream';
import { InvokeAgentRuntimeCommand } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

/** Answers each part of a request as soon as it is there, and at the end how many bytes there were. */
const agent = `
import { createServer } from 'node:http';
createServer((request, response) => {
  if (request.method === 'GET') return void response.end('{"status":"Healthy"}');
  let bytes = 0;
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
});
