import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { ServerProtocol } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleCode } from '../../packages/cli/src/package/bundle-code.ts';
import { pythonPackages } from '../../scripts/test/python-packages.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { guideBlocks } from '../support/guide.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { pythonWith } from '../support/python.ts';

const root = resolve(import.meta.dirname, '../..');
const agents = join(root, 'tests/support/protocol-agents');
const packages = await pythonPackages(root, join(root, 'tests/python-mcp.txt'));
const PAGE = 'mcp-and-a2a.md';

let platform: TestPlatform;
let clients: Clients;
/** In the checkout, whose packages are found from there. */
let folder: string;
const addresses: Partial<Record<ServerProtocol, string>> = {};

beforeAll(async () => {
  platform = await startTestPlatform();
  clients = clientsOf(platform);
  folder = await mkdtemp(join(root, '.cache', 'protocol-clients-'));
  for (const [heading, language, name] of [
    ['Sign the requests', 'js', 'signed-fetch.mjs'],
    ['Sign the requests', 'python', 'signed.py'],
    ['MCP clients', 'js', 'mcp_client.mjs'],
    ['MCP clients', 'python', 'mcp_client.py'],
    ['A2A clients', 'js', 'a2a_client.mjs'],
    ['A2A clients', 'python', 'a2a_client.py'],
  ] as const) {
    const [program = '', ...more] = guideBlocks(PAGE, heading, language);
    expect(more, `${heading} has one program in ${language}`).toEqual([]);
    await writeFile(join(folder, name), program);
  }
  const stage = join(folder, 'mcp-agent');
  const file = { name: 'mcp', language: 'typescript' as const, entrypoint: 'mcp.mjs' };
  const { entryPoint } = await bundleCode({ folder: agents, file }, stage);
  for (const [serverProtocol, agent] of [
    ['MCP', { folder: stage, entryPoint: [entryPoint] }],
    ['A2A', { folder: agents, entryPoint: ['a2a.mjs'] }],
  ] as const) {
    const { arn } = await deployAgent(platform, clients, {
      ...agent,
      entryPoint: [...agent.entryPoint],
      protocolConfiguration: { serverProtocol },
    });
    addresses[serverProtocol] = `${platform.ready.endpoint}/runtimes/${encodeURIComponent(arn)}`;
  }
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  if (folder) await rm(folder, { recursive: true, force: true });
});

/** What a program of the guide prints that is started as the guide says. */
async function printed(command: string, program: string, protocol: ServerProtocol): Promise<string[]> {
  const env = {
    ...process.env,
    ...platform.env,
    ...(packages === undefined ? {} : pythonWith(packages).env),
    RUNTIME_URL: addresses[protocol],
  };
  const { stdout } = await promisify(execFile)(command, [join(folder, program)], { env, timeout: 120_000 });
  return stdout.trimEnd().split('\n');
}

describe('the clients of the guide on MCP and A2A', () => {
  it('in JavaScript', async () => {
    expect(await printed(process.execPath, 'mcp_client.mjs', 'MCP')).toEqual(['count announce', '1']);
    expect(await printed(process.execPath, 'a2a_client.mjs', 'A2A')).toEqual(['1 hi']);
  });

  it.skipIf(packages === undefined)('in Python', async () => {
    expect(await printed('python3', 'mcp_client.py', 'MCP')).toEqual(['count announce', '1']);
    expect(await printed('python3', 'a2a_client.py', 'A2A')).toEqual(['1 hi']);
  });
});
