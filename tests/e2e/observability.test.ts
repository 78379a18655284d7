import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attribute, request, span } from '../../packages/platform/src/services/observability/testing/protobuf.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { hasTmux, Tmux } from '../support/tmux.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const CLI = join(ROOT, 'packages/cli/bin/agentcore.mjs');
let platform: TestPlatform;
let clients: Clients;
let arn: string;

beforeAll(async () => {
  platform = await startTestPlatform();
  clients = clientsOf(platform);
  ({ arn } = await deployAgent(platform, clients, { folder: join(import.meta.dirname, '../support/otlp-agent') }));
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

async function traces(...args: string[]): Promise<string> {
  const env = { ...process.env, ...platform.env };
  const { stdout } = await promisify(execFile)(process.execPath, [CLI, 'traces', ...args], {
    env,
    cwd: platform.dataDir,
    timeout: 60_000,
  });
  return stdout;
}

/** Sends a body as an exporter outside does. */
async function post(body: Buffer | string, headers: Record<string, string> = {}): Promise<Response> {
  const { accessKeyId, secretAccessKey } = platform.credentials;
  const authorization = `Basic ${Buffer.from(`${accessKeyId}:${secretAccessKey}`).toString('base64')}`;
  return fetch(`${platform.ready.endpoint}/v1/traces`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/x-protobuf', ...headers },
    body: new Uint8Array(Buffer.from(body as string)),
  });
}

describe('spans of an agent in a sandbox', () => {
  const session = sessionId('traced');
  let traceId: string;

  it('are sent without credentials, and are of the session that the sandbox has', async () => {
    const told = await invokeJson(clients, arn, session, { prompt: 'how is the weather?' });
    expect(told).toMatchObject({ status: 200, answer: '{}' });
    traceId = String(told.traceId);
    const sessions = async () => JSON.parse(await traces('list', '--json')).sessions;
    await expect
      .poll(sessions)
      .toMatchObject([{ sessionId: session, agent: arn, spans: 3, inputTokens: 11, outputTokens: 5 }]);
    expect(await traces('list', '--session', session)).toContain(traceId);
    expect(await traces('list', '--text', 'weather is fine')).toContain(session);
    expect(await traces('list', '--text', 'rain')).not.toContain(session);
  });

  it('are a tree in the terminal, and lines of a file', async () => {
    const lines = (await traces('show', traceId)).trimEnd().split('\n');
    // The parent of the first is the platform's own span, which is not stored here.
    expect(lines).toEqual(
      ['invoke_agent helper  7.0 ms', '  chat small  7.0 ms  11+5 tokens', '    execute_tool weather  7.0 ms'].map(
        (line, n) => (n === 0 ? expect.stringContaining(line) : line),
      ),
    );
    const file = join(platform.dataDir, 'trace.jsonl');
    await traces('export', traceId, '--output', file);
    expect(
      (await readFile(file, 'utf8'))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).service),
    ).toEqual(['helper', 'helper', 'helper']);
    await expect(traces('show', 'f'.repeat(32))).rejects.toMatchObject({ stderr: expect.stringContaining('no trace') });
    await expect(traces('show', 'nonsense')).rejects.toMatchObject({
      stderr: expect.stringContaining('32 hexadecimal'),
    });
  });

  it.skipIf(!hasTmux)('are stepped through with the keyboard, input and output of each', async () => {
    const environment = Object.entries(platform.env).map(([name, value]) => `${name}='${value}'`);
    const terminal = Tmux.open(
      `cd ${platform.dataDir} && env ${environment.join(' ')} ${process.execPath} ${CLI} traces show ${traceId} --steps`,
    );
    const shown = (): string => terminal.do('capture-pane', '-p');
    await expect.poll(shown).toContain('step 1 of 3');
    terminal.type('j');
    await expect.poll(shown).toContain('step 2 of 3');
    terminal.type('Enter');
    await expect.poll(shown).toContain('how is the weather?');
    expect(shown()).toContain('the weather is fine');
    terminal.type('j');
    await expect.poll(shown).toContain('step 3 of 3');
    expect(shown()).not.toContain('how is the weather?');
    terminal.type('q');
    await expect.poll(shown).not.toContain('step 3');
    terminal.do('kill-server');
  });
});

describe('spans from elsewhere', () => {
  it('come with an access key, whole or packed', async () => {
    const attributes = [attribute('session.id', 'outside'), attribute('user.id', 'jane')];
    const body = request([span({ traceId: '1'.repeat(32), attributes })]);
    expect((await post(body)).status).toBe(200);
    expect((await post(gzipSync(body), { 'content-encoding': 'gzip' })).status).toBe(200);
    await expect.poll(() => traces('list', '--user', 'jane')).toContain('outside');
  });

  it('malformed, without credentials, of an unknown type: are refused, and the server serves on', async () => {
    expect((await post('no protobuf')).status).toBe(400);
    expect((await post('{"resourceSpans":7}', { 'content-type': 'application/json' })).status).toBe(400);
    expect((await post('x', { 'content-type': 'text/plain' })).status).toBe(400);
    expect((await post('x', { 'content-encoding': 'gzip' })).status).toBe(400);
    expect((await post('x', { 'content-encoding': 'br' })).status).toBe(400);
    expect((await post('x', { authorization: 'Basic bm9ib2R5Om5vdGhpbmc=' })).status).toBe(401);
    expect((await post(request([span({})]))).status).toBe(200);
  });

  it('a span of 50 MB: is refused by its length, packed or not', async () => {
    const large = request([span({ attributes: [attribute('big', 'x'.repeat(50 * 1024 * 1024))] })]);
    const status = await post(large).then(
      (answer) => answer.status,
      // It may be cut off while it still sends.
      () => 413,
    );
    expect(status).toBe(413);
    expect((await post(gzipSync(large), { 'content-encoding': 'gzip' })).status).toBe(413);
    expect((await post(request([span({})]))).status).toBe(200);
  });

  it('kill -9 during ingest: what was acknowledged is there', async () => {
    const trace = '9'.repeat(32);
    const acknowledged: string[] = [];
    let n = 0;
    const send = async (): Promise<void> => {
      for (;;) {
        n += 1;
        const spanId = n.toString(16).padStart(16, '0');
        const answer = await post(
          request([span({ traceId: trace, spanId, attributes: [attribute('session.id', 'killed')] })]),
        );
        if (answer.status === 200) acknowledged.push(spanId);
        if (acknowledged.length === 100) void platform.end('SIGKILL');
      }
    };
    await Promise.allSettled([send(), send(), send(), send()]);
    expect(acknowledged.length).toBeGreaterThanOrEqual(100);
    const { dataDir } = platform;
    platform = await startTestPlatform({ dataDir });
    const stored = async () => {
      const spans = (await traces('export', trace))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).spanId);
      return acknowledged.filter((one) => !spans.includes(one));
    };
    await expect.poll(stored).toEqual([]);
  });
});
