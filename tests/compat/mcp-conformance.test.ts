import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateGatewayCommand, CreateGatewayTargetCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Backend,
  startModernBackend,
  startSessionBackend,
} from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/backends.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { newerServer } from '../support/conformance/newer-server.ts';
import { olderServer } from '../support/conformance/older-server.ts';
import { startUnprefixed, type Unprefixed } from '../support/conformance/unprefixed.ts';
import { settledTarget } from '../support/gateway.ts';
import { newRole } from '../support/iam.ts';
import { MCP_CONFORMANCE, npmPackage } from '../support/npm-package.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

/** The suite of the protocol's makers: this version is the first that knows 2026-07-28. */
const TARGET = 'suite';

const NO_COMPLETIONS = 'A gateway completes no arguments; it says so among its capabilities, as the original.';
const NO_SUBSCRIPTIONS =
  'A gateway tells of no change of one resource; it says so among its capabilities, as the original.';

/** The versions, a server of each behind the gateway, and the checks that the gateway does not pass, each with the reason. */
const ERAS: [version: string, start: () => Promise<Backend>, failing: Readonly<Record<string, string>>][] = [
  ['2026-07-28', () => startModernBackend(newerServer), { 'completion-complete: completion-complete': NO_COMPLETIONS }],
  [
    '2025-11-25',
    () => startSessionBackend(olderServer),
    {
      'completion-complete: completion-complete': NO_COMPLETIONS,
      'resources-subscribe: resources-subscribe': NO_SUBSCRIPTIONS,
      'resources-unsubscribe: resources-unsubscribe': NO_SUBSCRIPTIONS,
    },
  ],
];

interface Check {
  id: string;
  status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO';
}

const folder = await npmPackage(MCP_CONFORMANCE);
const suite = join(folder ?? '', 'node_modules/@modelcontextprotocol/conformance');
let platform: TestPlatform;
let clients: Clients;
let roleArn: string;
const open: { close(): Promise<void> }[] = [];

describe.skipIf(folder === undefined)('the conformance suite of MCP', () => {
  beforeAll(async () => {
    platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
    clients = clientsOf(platform);
    roleArn = await newRole(platform, 'conformance', [{ Effect: 'Allow', Action: '*', Resource: '*' }]);
  });

  afterAll(async () => {
    clients?.close();
    await platform?.dispose();
    await Promise.all(open.map((one) => one.close()));
  });

  it.each(ERAS)(
    'finds in a gateway of %s nothing but what is listed here',
    async (version, start, failing) => {
      const backend = await start();
      const front = await unprefixed(version, backend.url);
      open.push(backend, front);
      const { failed, passed } = await run(front.url, version);
      expect(passed).toBeGreaterThan(20);
      expect(failed).toEqual(Object.keys(failing).sort());
    },
    300_000,
  );
});

/** A gateway that everybody may call, with one target, which is reached without its prefix. */
async function unprefixed(version: string, endpoint: string): Promise<Unprefixed> {
  const { gatewayId: gatewayIdentifier = '', gatewayUrl = '' } = await clients.control.send(
    new CreateGatewayCommand({
      ...{ name: `suite-${version}`, roleArn, protocolType: 'MCP', authorizerType: 'NONE' },
      protocolConfiguration: { mcp: { sessionConfiguration: {} } },
    }),
  );
  const { targetId = '' } = await clients.control.send(
    new CreateGatewayTargetCommand({
      ...{ gatewayIdentifier, name: TARGET, targetConfiguration: { mcp: { mcpServer: { endpoint } } } },
    }),
  );
  expect(await settledTarget(clients, gatewayIdentifier, targetId)).toMatchObject({ status: 'READY' });
  return startUnprefixed(new URL(gatewayUrl), TARGET);
}

/** The scenarios that a server of that version has to pass: the suite runs others beside, of extensions. */
async function scenariosOf(version: string): Promise<string[]> {
  const text = await readFile(join(suite, 'requirements', `${version}.yaml`), 'utf8');
  const [, list = ''] = /^server:\n((?: +- .*\n)+)/m.exec(text) ?? [];
  return list.split('\n').flatMap((line) => /- (\S+)/.exec(line)?.[1] ?? []);
}

/** Runs them; the checks that failed, each with its scenario, in order, and how many passed. */
async function run(url: string, version: string): Promise<{ failed: string[]; passed: number }> {
  const results = await mkdtemp(join(tmpdir(), 'conformance-'));
  const args = [join(suite, 'dist/index.js'), 'server', '--url', url, '--requirements', version];
  const child = spawn(process.execPath, [...args, '--output-dir', results], { cwd: results, stdio: 'ignore' });
  await once(child, 'exit');
  const folders = await readdir(results);
  const failed: string[] = [];
  let passed = 0;
  for (const scenario of await scenariosOf(version)) {
    const ran = folders.find((name) => name.replace(/-\d{4}-\d\d-\d\dT.*$/, '') === `server-${scenario}`);
    const checks: Check[] = ran ? JSON.parse(await readFile(join(results, ran, 'checks.json'), 'utf8')) : [];
    passed += checks.filter(({ status }) => status === 'SUCCESS').length;
    const bad = checks.filter(({ status }) => status === 'FAILURE').map(({ id }) => id);
    for (const id of new Set(ran ? bad : ['did not run'])) failed.push(`${scenario}: ${id}`);
  }
  await rm(results, { recursive: true, force: true });
  return { failed: failed.sort(), passed };
}
