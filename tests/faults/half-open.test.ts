import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { signedRequest } from '../../bench/support/signed-requests.ts';
import { clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeText, sessionId } from '../support/invoke.ts';
import { OtherNetwork } from '../support/other-network.ts';
import { startTestPlatform } from '../support/platform-process.ts';

const NETWORK = { name: `half${process.pid}`, host: '172.30.98.1', inside: '172.30.98.2' };

/** Begins an answer and then says nothing; tells how many such answers there are, and how many have lost their client. */
const agent = `
import { createServer } from 'node:http';
const seen = { begun: 0, lost: 0 };
createServer((request, response) => {
  if (request.method === 'GET') return void response.end('{"status":"Healthy"}');
  request.setEncoding('utf8').once('data', (text) => {
    if (text === '"seen"') return void response.end(JSON.stringify(seen));
    seen.begun += 1;
    response.once('close', () => (seen.lost += 1)).write('begun');
  });
}).listen(process.env.PORT ?? 8080);
`;

/** Sends what it is told and reads for ever, as a client does that waits for the next part. */
const CLIENT = `
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
s.sendall(bytes.fromhex(sys.argv[3]))
while s.recv(4096): pass
`;

const root = userInfo().uid === 0;
let folder: string;
let network: OtherNetwork;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'half-open-'));
  await writeFile(join(folder, 'index.mjs'), agent);
  if (!root) return;
  network = await OtherNetwork.open(NETWORK);
});
afterAll(async () => {
  await network?.close();
  await rm(folder, { recursive: true, force: true });
});

/** A platform that asks after so long, with an answer under way to a client in the other network. */
async function streaming(probeSeconds: number) {
  const platform = await startTestPlatform({
    args: ['--host', NETWORK.host, '--sandbox', 'process', '--connection-probe-seconds', String(probeSeconds)],
  });
  const clients = clientsOf(platform);
  const { arn } = await deployAgent(platform, clients, { folder });
  const session = sessionId('half-open');
  const endpoint = new URL(platform.ready.endpoint);
  const { wire } = await signedRequest({
    endpoint,
    path: `/runtimes/${encodeURIComponent(arn)}/invocations`,
    headers: { 'x-amzn-bedrock-agentcore-runtime-session-id': session },
    body: '"stream"',
    region: platform.ready.region,
    credentials: platform.credentials,
  });
  const client = network.spawn('python3', '-c', CLIENT, endpoint.hostname, endpoint.port, wire.toString('hex'));
  return {
    seen: async () => JSON.parse(await invokeText(clients, arn, session, 'seen')),
    close: async () => {
      client.kill('SIGKILL');
      if (client.exitCode === null && client.signalCode === null) await once(client, 'exit');
      clients.close();
      await platform.dispose();
    },
  };
}

it('a client whose machine is gone without a word is noticed, and the agent told; not before it was asked after', async (context) => {
  if (!root) return context.skip('needs root, to cut a network');
  const started: Awaited<ReturnType<typeof streaming>>[] = [];
  try {
    const start = async (probeSeconds: number) => {
      const one = await streaming(probeSeconds);
      started.push(one);
      return one;
    };
    const [asked, unasked] = [await start(1), await start(7200)];
    await expect.poll(asked.seen, { timeout: 60_000, interval: 500 }).toEqual({ begun: 1, lost: 0 });
    await expect.poll(unasked.seen, { timeout: 60_000, interval: 500 }).toEqual({ begun: 1, lost: 0 });
    await network.cut();
    await expect.poll(asked.seen, { timeout: 60_000, interval: 500 }).toEqual({ begun: 1, lost: 1 });
    expect(await unasked.seen()).toEqual({ begun: 1, lost: 0 });
  } finally {
    await Promise.all(started.map((one) => one.close()));
  }
});
