import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { UpdateWorkloadIdentityCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pythonPackages } from '../../scripts/test/python-packages.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployPythonAgent } from '../support/deploy.ts';
import { invokeJson, invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const agent = resolve(import.meta.dirname, '../support/vendor-python-agent');
const packages = await pythonPackages(resolve(import.meta.dirname, '../..'), join(agent, 'requirements.txt'));
/** Of its own: the vendor's host names lead to port 443. */
const ADDRESS = '127.43.0.4';
const agentcore = join(import.meta.dirname, '../../packages/cli/src/main.ts');
let platform: TestPlatform;
let clients: Clients;
let arn: string;

beforeAll(async () => {
  if (packages === undefined) return;
  platform = await startTestPlatform({ args: ['--host', ADDRESS, '--tls'] });
  clients = clientsOf(platform);
  ({ arn } = await deployPythonAgent(platform, clients, { agent, packages }));
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

describe.skipIf(!packages)("an agent on the vendor's Python package, unmodified, in a sandbox", () => {
  it('answers, remembers its session and sees its headers', async () => {
    const session = sessionId('vendor');
    await invokeJson(clients, arn, session, {});
    expect(await invokeJson(clients, arn, session, {})).toMatchObject({ count: 2, session });
  });

  it('finds its workload access token in its context, each user another one', async () => {
    const session = sessionId('workload');
    const tokenFor = async (runtimeUserId?: string) =>
      JSON.parse(await invokeText(clients, arn, session, {}, { runtimeUserId })).token;
    const [none, ada, bob] = [await tokenFor(), await tokenFor('ada'), await tokenFor('bob')];
    for (const token of [none, ada, bob]) expect(token).toMatch(/^[\w-]{100,}$/);
    expect(new Set([none, ada, bob]).size).toBe(3);
    expect(await tokenFor('bob')).toBe(bob);
  });

  it('finds there where its users may be sent back to', async () => {
    const session = sessionId('callback');
    const callback = async () => JSON.parse(await invokeText(clients, arn, session, {})).callback;
    expect(await callback()).toBeNull();
    const name = arn.split('/').at(-1);
    const urls = ['https://app.example/back'];
    await clients.control.send(new UpdateWorkloadIdentityCommand({ name, allowedResourceOauth2ReturnUrls: urls }));
    expect(await callback()).toBe(urls[0]);
  });

  it('streams', async () => {
    expect(await invokeText(clients, arn, sessionId('stream'), { do: 'stream' })).toBe(
      'data: {"part": 1}\n\ndata: {"part": 2}\n\ndata: {"part": 3}\n\n',
    );
  });

  it('fails with its own words', async () => {
    await expect(invokeText(clients, arn, sessionId('fail'), { do: 'fail' })).rejects.toMatchObject({
      name: 'RuntimeClientError',
      message: expect.stringContaining('on purpose'),
    });
  });

  it("talks over a WebSocket and a shell with the vendor's own client", async () => {
    const session = sessionId('streams');
    const { region, credentialsFile } = platform.ready;
    const env = {
      ...process.env,
      AWS_SHARED_CREDENTIALS_FILE: credentialsFile,
      PYTHONPATH: packages ?? '',
      PYTHONDONTWRITEBYTECODE: '1',
    };
    const shown = spawnSync(process.execPath, [agentcore, 'env', '--hosts', '--json'], { env, encoding: 'utf8' });
    expect(shown.status, shown.stderr).toBe(0);
    const { hosts } = JSON.parse(shown.stdout) as { hosts: string[] };
    expect(hosts).toContain(`${ADDRESS} bedrock-agentcore.${region}.amazonaws.com`);
    // What a person does to /etc/hosts is done for this one process.
    const script = `printf '%s\\n' "$0" > "$2" && mount --bind "$2" /etc/hosts && eval "$("$3" "$4" env --hosts)" && exec python3 "$1"`;
    const file = join(import.meta.dirname, 'vendor_streams.py');
    const args = [hosts.join('\n'), file, join(platform.dataDir, 'hosts'), process.execPath, agentcore];
    const ran = spawnSync('unshare', ['--mount', 'sh', '-c', script, ...args], {
      env,
      input: JSON.stringify({ region, arn, session }),
      encoding: 'utf8',
      timeout: 60_000,
    });
    expect(ran.status, ran.stderr).toBe(0);
    expect(JSON.parse(ran.stdout)).toEqual({
      first: { session },
      echo: 'HELLO',
      shell: { id: 'mine', session, exit: 7, size: true },
    });
  });
});
