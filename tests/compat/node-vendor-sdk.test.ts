import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleCode } from '../../packages/cli/src/package/bundle-code.ts';
import { copyPackages } from '../../packages/cli/src/package/copy-packages.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeJson, invokeText, sessionId } from '../support/invoke.ts';
import { npmPackage, VENDOR_SDK } from '../support/npm-package.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { openTlsFront, type TlsFront } from '../support/tls-front.ts';

const agent = resolve(import.meta.dirname, '../support/vendor-node-agent');
const vendor = await npmPackage(VENDOR_SDK);
let platform: TestPlatform;
let clients: Clients;
let front: TlsFront;
let folder: string;
let arn: string;

beforeAll(async () => {
  if (vendor === undefined) return;
  // Below the package's folder, where its imports are found.
  folder = await mkdtemp(join(vendor, 'agent-'));
  for (const name of ['agent.mjs', 'client.mjs']) await copyFile(join(agent, name), join(folder, name));
  const file = { name: 'vendor', language: 'typescript' as const, entrypoint: 'agent.mjs' };
  const stage = join(folder, 'stage');
  const { entryPoint, external } = await bundleCode({ folder, file }, stage);
  await copyPackages(folder, external, stage);
  platform = await startTestPlatform();
  clients = clientsOf(platform);
  // Its WebSockets are on https at the usual port, whatever it is told.
  front = await openTlsFront('127.43.0.3', platform.ready.endpoint);
  ({ arn } = await deployAgent(platform, clients, { folder: stage, entryPoint: [entryPoint] }));
});
afterAll(async () => {
  clients?.close();
  await front?.close();
  await platform?.dispose();
  if (folder) await rm(folder, { recursive: true, force: true });
});

describe.skipIf(!vendor)("an agent on the vendor's TypeScript package, unmodified, in a sandbox", () => {
  it('answers and remembers its session', async () => {
    const session = sessionId('vendor');
    await invokeJson(clients, arn, session, {});
    const token = expect.stringMatching(/^[\w-]{100,}$/);
    expect(await invokeJson(clients, arn, session, {})).toEqual({ count: 2, session, token });
  });

  it('streams', async () => {
    const text = await invokeText(clients, arn, sessionId('stream'), { do: 'stream' }, { accept: 'text/event-stream' });
    expect([...text.matchAll(/^data: (.*)$/gm)].map((match) => match[1])).toEqual([
      '{"part":1}',
      '{"part":2}',
      '{"part":3}',
    ]);
  });

  it('fails with its own words', async () => {
    await expect(invokeText(clients, arn, sessionId('fail'), { do: 'fail' })).rejects.toMatchObject({
      name: 'RuntimeClientError',
    });
  });

  it("is reached by the vendor's own client: WebSocket signed and presigned, and the shell", async () => {
    const session = sessionId('streams');
    const { stdout } = await promisify(execFile)(process.execPath, [join(folder, 'client.mjs')], {
      env: {
        ...process.env,
        ...platform.env,
        BEDROCK_AGENTCORE_DATA_PLANE_ENDPOINT: front.url,
        NODE_EXTRA_CA_CERTS: front.certificateFile,
        ARN: arn,
        SESSION: session,
      },
      timeout: 120_000,
    });
    expect(JSON.parse(stdout)).toEqual({
      signed: [{ session }, 'HELLO'],
      presigned: [{ session }, 'HELLO'],
      shell: { output: true, exit: 7 },
    });
  });
});
