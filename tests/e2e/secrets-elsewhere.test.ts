import { join } from 'node:path';
import { GetAgentRuntimeCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { expect, it } from 'vitest';
import { lacksGvisor, RUNSC } from '../../packages/platform/src/kernel/sandbox/testing/gvisor.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { ServerGroup } from '../support/server-group.ts';
import { signedFetch } from '../support/signed-fetch.ts';

const PROBE = join(import.meta.dirname, '../support/probe-agent');
// Sandboxes that were made ahead must not hold a value that was changed since.
const POOL = { AGENTPLATFORM_POOL_MAX_PER_VERSION: '2' };
const NAMED = { environmentVariables: { MODEL_KEY: 'secretref:MODEL_KEY' } };

async function put(platform: TestPlatform, value: string): Promise<void> {
  const answer = await signedFetch(platform, {
    method: 'PUT',
    path: '/_platform/secrets/MODEL_KEY',
    content: { value },
  });
  expect(answer.status).toBe(204);
}

const keyOf = async (clients: Clients, arn: string, session: string): Promise<unknown> =>
  (await invokeJson(clients, arn, session, { do: 'env' })).MODEL_KEY;

const lacking = lacksGvisor();
it('a secret reaches the agents on gVisor that name it, and a changed one new sessions, also those that are copies', async (context) => {
  if (lacking) context.skip(lacking);
  const platform = await startTestPlatform({ args: ['--sandbox', 'oci', '--sandbox-oci-runtime', RUNSC], env: POOL });
  const clients = clientsOf(platform);
  try {
    expect(platform.ready.isolation).toContain('kernel of its own');
    await put(platform, 'first-of-gvisor');
    const { arn, id } = await deployAgent(platform, clients, { folder: PROBE, ...NAMED });
    const other = await deployAgent(platform, clients, { folder: PROBE });
    const old = sessionId('old');
    expect(await keyOf(clients, arn, old)).toBe('first-of-gvisor');
    expect(await keyOf(clients, other.arn, sessionId('other'))).toBeUndefined();
    for (const value of ['second', 'third']) {
      await put(platform, value);
      expect(await keyOf(clients, arn, sessionId(value))).toBe(value);
    }
    expect(await keyOf(clients, arn, old)).toBe('first-of-gvisor');
    const shown = await clients.control.send(new GetAgentRuntimeCommand({ agentRuntimeId: id }));
    expect(shown.environmentVariables).toEqual(NAMED.environmentVariables);
    expect(platform.log()).not.toContain('first-of-gvisor');
  } finally {
    clients.close();
    await platform.dispose();
  }
});

it('a secret that was set at one server is that of sessions of the other, from the answer on', async () => {
  const servers = await ServerGroup.open({ sandbox: ['--sandbox', 'process'], leaseSeconds: 60, env: POOL });
  let close = (): void => undefined;
  try {
    const { a, b, throughA, throughB } = await servers.pair();
    close = () => {
      throughA.close();
      throughB.close();
    };
    const atB = { ...b, credentials: a.credentials };
    await put(a, 'first');
    const { arn } = await deployAgent(a, throughA, { folder: PROBE, ...NAMED });
    expect(await keyOf(throughA, arn, sessionId('a1'))).toBe('first');
    expect(await keyOf(throughB, arn, sessionId('b1'))).toBe('first');
    await put(atB, 'second');
    expect(await keyOf(throughA, arn, sessionId('a2'))).toBe('second');
    expect(await keyOf(throughB, arn, sessionId('b2'))).toBe('second');
    await put(a, 'third');
    expect(await keyOf(throughB, arn, sessionId('b3'))).toBe('third');
    const held = await signedFetch(atB, { method: 'GET', path: '/_platform/secrets' });
    expect(await held.text()).toContain('MODEL_KEY');
  } finally {
    close();
    await servers.close();
  }
});
