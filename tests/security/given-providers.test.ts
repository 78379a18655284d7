import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { CreateApiKeyCredentialProviderCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bundleCode } from '../../packages/cli/src/package/bundle-code.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { newRole, newUser } from '../support/iam.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

/** With `defaultRoleProviders: given`. What is without it: `e2e/identity-tokens.test.ts`, where agents name a provider and are given its key. */
let dir: string;
let platform: TestPlatform;
let root: Clients;
const arns: Record<string, string> = {};

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'given-providers-'));
  const folder = join(resolve(import.meta.dirname, '../..'), 'tests/support/role-agent');
  await bundleCode({ folder, file: { name: 'role_agent', language: 'javascript', entrypoint: 'index.mjs' } }, dir);
  platform = await startTestPlatform({ args: ['--default-role-providers', 'given'] });
  root = clientsOf(platform);
  for (const name of ['search', 'other']) {
    const apiKey = ['sk', name].join('-');
    const made = await root.control.send(new CreateApiKeyCredentialProviderCommand({ name, apiKey }));
    arns[name] = made.credentialProviderArn ?? '';
  }
}, 200_000);
afterAll(async () => {
  root?.close();
  await platform?.dispose();
  await rm(dir, { recursive: true, force: true });
});

it('agents of the default role get the keys that their deployer gave them, and no other whose name they know', {
  timeout: 300_000,
}, async () => {
  const roleArn = await newRole(platform, 'wide', [{ Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource: '*' }]);
  const allow = (Action: string) => ({ Effect: 'Allow', Action, Resource: '*' });
  const poor = clientsOf(platform, {
    credentials: await newUser(
      platform,
      'poor',
      ['bedrock-agentcore:*', 'iam:PassRole', 's3:*', 'agentplatform:PullImage'].map(allow),
    ),
  });
  const keys = async (by: Clients, definition: object) => {
    const { arn } = await deployAgent(platform, by, { folder: dir, ...definition });
    const ask = async (provider: string) => {
      const { apiKey, error } = await invokeJson(root, arn, sessionId('keys'), { do: 'key', provider });
      return apiKey ?? error;
    };
    return [await ask('search'), await ask('other')];
  };
  const no = 'AccessDeniedException';
  const environmentVariables = { SEARCH: arns.search ?? '' };
  try {
    expect(await keys(root, {})).toEqual([no, no]);
    // The name alone gives nothing, nor does somebody who may not.
    expect(await keys(root, { environmentVariables: { SEARCH: 'search' } })).toEqual([no, no]);
    expect(await keys(poor, { environmentVariables })).toEqual([no, no]);
    // The controls: who was given it, and a role of its own.
    expect(await keys(root, { environmentVariables })).toEqual(['sk-search', no]);
    expect(await keys(root, { roleArn })).toEqual(['sk-search', 'sk-other']);
  } finally {
    poor.close();
  }
});
