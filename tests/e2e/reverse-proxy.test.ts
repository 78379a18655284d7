import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { Agent } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { BedrockAgentCoreClient, InvokeAgentRuntimeCommand } from '@aws-sdk/client-bedrock-agentcore';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { Agent as Dispatcher, fetch } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { guideBlocks } from '../support/guide.ts';
import { invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { Stream, StreamSigner } from '../support/websocket.ts';

const run = promisify(execFile);
const PAGE = 'reverse-proxy.md';
const PATH = `${process.env.PATH}:/usr/sbin`;
const has = (command: string, ...args: string[]): Promise<boolean> =>
  run(command, args, { env: { ...process.env, PATH } }).then(
    () => true,
    () => false,
  );
const nginx = await has('nginx', '-v');
const systemd = await has('systemd-analyze', '--version');

/** Says how large a body is, or `one` at once and `two` when it is told to in another request; echoes on a WebSocket. */
const agent = `
import { createServer } from 'node:http';
import { createHash } from 'node:crypto';
let waiting;
const server = createServer(async (request, response) => {
  if (request.method === 'GET') return void response.end('{"status":"Healthy"}');
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts);
  const { go, wait } = body.length < 100 ? JSON.parse(body) : {};
  if (wait) {
    waiting = response;
    response.writeHead(200, { 'content-type': 'text/plain' }).write('one');
  } else if (go) {
    waiting.end('two');
    response.end('told');
  } else response.end(String(body.length));
});
server.on('upgrade', (request, socket) => {
  const accept = createHash('sha1').update(request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nupgrade: websocket\\r\\nconnection: Upgrade\\r\\nsec-websocket-accept: ' + accept + '\\r\\n\\r\\n');
  // A text message of two bytes to whoever comes.
  socket.write(Buffer.from([0x81, 2, 0x68, 0x69]));
});
server.listen(Number(process.env.PORT ?? 8080));
`;

let folder: string;
let platform: TestPlatform;
let arn: string;
let ca: Buffer;
const proxies: ChildProcess[] = [];

beforeAll(async () => {
  if (!nginx) return;
  folder = await mkdtemp(join(tmpdir(), 'reverse-proxy-'));
  const named = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const files = ['-keyout', join(folder, 'key.pem'), '-out', join(folder, 'cert.pem')];
  await run('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...files, ...named]);
  ca = await readFile(join(folder, 'cert.pem'));
  platform = await startTestPlatform({ args: ['--sandbox', 'process'] });
  const code = await mkdtemp(join(folder, 'agent-'));
  await writeFile(join(code, 'index.mjs'), agent);
  const clients = clientsOf(platform);
  arn = (await deployAgent(platform, clients, { folder: code })).arn;
  clients.close();
});
afterAll(async () => {
  for (const proxy of proxies) {
    const gone = once(proxy, 'exit');
    proxy.kill('SIGTERM');
    await gone;
  }
  await platform?.dispose();
  if (folder) await rm(folder, { recursive: true, force: true });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return typeof address === 'object' && address ? address.port : 0;
}

/** nginx with the configuration of the guide, which `change` may alter, on a port of its own. Gives the platform as clients see it behind it. */
async function behindNginx(change = (text: string): string => text): Promise<TestPlatform> {
  const [config = ''] = guideBlocks(PAGE, 'nginx', 'nginx');
  const port = await freePort();
  const site = change(config)
    .replace('127.0.0.1:4100', new URL(platform.ready.endpoint).host)
    .replace('listen 443', `listen 127.0.0.1:${port}`)
    .replace('/etc/ssl/agents.example.com.pem', join(folder, 'cert.pem'))
    .replace('/etc/ssl/agents.example.com.key', join(folder, 'key.pem'));
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((of) => `${of}_temp_path ${folder}/${of};`);
  const file = join(folder, `${port}.conf`);
  await writeFile(
    file,
    `pid ${folder}/${port}.pid;\nerror_log ${folder}/${port}.log;\nevents {}\nhttp {\naccess_log off;\n${temp.join('\n')}\n${site}}\n`,
  );
  const proxy = spawn('nginx', ['-e', `${folder}/${port}.log`, '-c', file, '-g', 'daemon off; user root;'], {
    env: { ...process.env, PATH },
    stdio: 'ignore',
  });
  proxies.push(proxy);
  const endpoint = `https://127.0.0.1:${port}`;
  await expect.poll(() => get(`${endpoint}/readyz`), { timeout: 60_000 }).toBe(200);
  return { ...platform, ready: { ...platform.ready, endpoint } };
}

const get = (url: string): Promise<number> =>
  fetch(url, { dispatcher: new Dispatcher({ connect: { ca } }) }).then(
    ({ status }) => status,
    () => 0,
  );

function clientOf({ ready, credentials }: TestPlatform): BedrockAgentCoreClient {
  return new BedrockAgentCoreClient({
    endpoint: ready.endpoint,
    region: ready.region,
    credentials,
    maxAttempts: 1,
    requestHandler: new NodeHttpHandler({ httpsAgent: new Agent({ ca }) }),
  });
}

describe.skipIf(!nginx)('the nginx configuration of the guide', () => {
  it('passes signed requests of any size, streams, WebSockets, and no metrics', async () => {
    const front = await behindNginx();
    const data = clientOf(front);
    const session = sessionId('proxy');
    // Ten times what nginx lets through by itself.
    const big = JSON.stringify({ text: 'x'.repeat(10_000_000) });
    const clients = { ...clientsOf(platform), data };
    expect(await invokeText(clients, arn, session, JSON.parse(big))).toBe(String(big.length));

    // `two` is only said after `one` has been read.
    const ask = { agentRuntimeArn: arn, runtimeSessionId: session, payload: Buffer.from('{"wait":true}') };
    const { response } = await data.send(new InvokeAgentRuntimeCommand(ask));
    const parts = (response?.transformToWebStream() ?? new ReadableStream()).getReader();
    expect(Buffer.from((await parts.read()).value).toString()).toBe('one');
    expect(await invokeText(clients, arn, session, { go: true })).toBe('told');
    expect(Buffer.from((await parts.read()).value).toString()).toBe('two');

    const signer = new StreamSigner(front);
    const target = { arn, query: { qualifier: 'DEFAULT' } };
    const headers = await signer.headers(target, session);
    const stream = await Stream.open(signer.url(target), [], { headers, ca });
    expect(String(await stream.next())).toBe('hi');
    stream.socket.terminate();

    expect(await get(`${platform.ready.endpoint}/metrics`)).toBe(200);
    expect(await get(`${front.ready.endpoint}/metrics`)).toBe(403);
    clients.close();
  });

  it('needs its Host line: without it no signature fits', async () => {
    const front = await behindNginx((text) => text.replace(/^.*proxy_set_header Host .*$/m, ''));
    const data = clientOf(front);
    const asked = invokeText({ ...clientsOf(platform), data }, arn, sessionId('host'), {});
    await expect(asked).rejects.toMatchObject({ name: 'InvalidSignatureException' });
    data.destroy();
  });
});

describe.skipIf(!systemd)('the unit of the guide', () => {
  it('is one that systemd takes without a warning', async () => {
    const [unit = ''] = guideBlocks(PAGE, 'systemd', 'ini');
    const place = await mkdtemp(join(tmpdir(), 'unit-'));
    const verify = async (text: string): Promise<string> => {
      await writeFile(join(place, 'agentplatform.service'), text.replace('/usr/bin/node', process.execPath));
      const said = await run('systemd-analyze', ['verify', join(place, 'agentplatform.service')]).catch(String);
      return typeof said === 'string' ? said : said.stderr;
    };
    try {
      expect(unit).toContain('ExecStart=/usr/bin/node scripts/bootstrap.mjs platform ');
      expect(await verify(unit)).not.toContain('agentplatform.service');
      expect(await verify(unit.replace('KillMode=mixed', 'KillMode=gentle'))).toContain('agentplatform.service');
    } finally {
      await rm(place, { recursive: true });
    }
  });
});
