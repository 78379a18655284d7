import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StopRuntimeSessionCommand } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startPostgres, type TestPostgres } from '../../packages/platform/src/kernel/storage/testing/postgres.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeJson, invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

/** Short, so that a server that is gone is given up within the test; long enough for a busy machine to keep its own. */
const LEASE_SECONDS = 8;
const folder = join(import.meta.dirname, '../support/probe-agent');

let postgres: TestPostgres;
let home: string;
let env: Record<string, string>;
let a: TestPlatform;
let b: TestPlatform;
let throughA: Clients;
let throughB: Clients;
let arn: string;

/** Servers on one database, with one master key and one store of objects, sandboxes of the same machine. */
async function server(name: string): Promise<TestPlatform> {
  return startTestPlatform({
    dataDir: join(home, name),
    env,
    args: [
      ...['--sandbox', 'process', '--servers-lease-seconds', String(LEASE_SECONDS)],
      ...['--secrets-key-file', join(home, 'key')],
    ],
  });
}

beforeAll(async () => {
  postgres = await startPostgres();
  home = await mkdtemp(join(tmpdir(), 'agentplatform-two-'));
  env = { AGENTPLATFORM_DATABASE_URL: await postgres.createDatabase() };
  a = await server('a');
  throughA = clientsOf(a);
  arn = (await deployAgent(a, throughA, { folder })).arn;
  // The same objects for both, as a directory that two machines mount.
  await mkdir(join(home, 'b'), { mode: 0o700 });
  await symlink(join(home, 'a/objects'), join(home, 'b/objects'));
  b = await server('b');
  throughB = clientsOf(b, { credentials: a.credentials });
});

afterAll(async () => {
  throughA?.close();
  throughB?.close();
  await Promise.all([a?.end(), b?.end()]);
  await postgres?.stop();
  await rm(home, { recursive: true, force: true });
});

/** Sandboxes of both servers that exist now; ids of agents that stand ready are among them. */
async function sandboxes(): Promise<string[]> {
  const of = (name: string): Promise<string[]> => readdir(join(home, name, 'processes')).catch(() => []);
  return [...(await of('a')), ...(await of('b'))];
}

const count = async (clients: Clients, session: string): Promise<number> =>
  Number((await invokeJson(clients, arn, session, { do: 'count' })).count);

describe('two servers on one PostgreSQL', () => {
  it('make one sandbox for each of many ids that both are asked for at once, and both reach it', async () => {
    const ids = ['one', 'two', 'three', 'four'].map(sessionId);
    const calls = ids.flatMap((id) => [throughA, throughB, throughB, throughA].map((clients) => count(clients, id)));
    const counted = await Promise.all(calls);
    // Each id was counted by one agent alone: one, two, three, four in some order.
    for (let i = 0; i < ids.length; i += 1) expect(counted.slice(i * 4, i * 4 + 4).toSorted()).toEqual([1, 2, 3, 4]);
  });

  it('hand each other the stop of a session, and the next use of the id is a fresh sandbox', async () => {
    const id = sessionId('stopped');
    expect(await count(throughA, id)).toBe(1);
    expect(await count(throughB, id)).toBe(2);
    await throughB.data.send(new StopRuntimeSessionCommand({ agentRuntimeArn: arn, runtimeSessionId: id }));
    expect(await count(throughB, id)).toBe(1);
    expect(await count(throughA, id)).toBe(2);
  });

  it('give the agent the token of the user who calls, whichever of them he asks', async () => {
    const id = sessionId('workload');
    const token = async (clients: Clients, runtimeUserId: string): Promise<unknown> =>
      JSON.parse(await invokeText(clients, arn, id, { do: 'headers' }, { runtimeUserId })).workloadaccesstoken;
    const ada = await token(throughA, 'ada');
    expect(ada).toMatch(/^[\w-]{100,}$/);
    // The server that has the session has it at hand.
    expect(await token(throughB, 'ada')).toBe(ada);
    expect(await token(throughB, 'bob')).not.toBe(ada);
  });

  it('keep to one sandbox for an id while one is killed and started again, and the other is asked all the time', async () => {
    const id = sessionId('killed');
    expect(await count(throughA, id)).toBe(1);
    await a.end('SIGKILL');
    // Its lease still counts, and nobody answers there: the call is told to come again, and nothing is started beside it.
    const refused = await invokeJson(throughB, arn, id, { do: 'count' }).catch((error: unknown) => error);
    expect(refused).toMatchObject({ name: 'ServiceUnavailableException' });
    throughA.close();
    a = await server('a');
    throughA = clientsOf(a);
    // Taken up, or, when the start took longer than a lease, ended and made anew: one sandbox in either case.
    const first = await count(throughA, id);
    expect([1, 2]).toContain(first);
    for (let tries = 0; tries < 100; tries += 1) {
      const answer = await count(throughB, id).catch(() => undefined);
      if (answer !== undefined) {
        expect(answer).toBe(first + 1);
        return;
      }
      await sleep(100);
    }
    throw new Error('the other server never found the session again');
  });

  it('give the sessions of a server that stays away to the other, after its sandboxes have ended', async () => {
    const id = sessionId('away');
    expect(await count(throughA, id)).toBe(1);
    const before = await sandboxes();
    await a.end('SIGKILL');
    let taken: number | undefined;
    for (let tries = 0; taken === undefined && tries < 400; tries += 1) {
      taken = await count(throughB, id).catch(() => undefined);
      if (taken === undefined) await sleep(100);
    }
    expect(taken).toBe(1);
    // Every agent of the server that was killed is gone, though it never came back to end them.
    const left = execFileSync('sh', ['-c', `pgrep -f "^perl .*process-owner.pl ${join(home, 'a')}/" || true`]);
    expect(left.toString()).toBe('');
    expect(before.length).toBeGreaterThan(0);
    throughA.close();
    a = await server('a');
    throughA = clientsOf(a);
    // It finds that its sessions are another's, and hands calls on.
    expect(await count(throughA, id)).toBe(2);
  });
});
