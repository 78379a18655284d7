import { readdir, readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StopRuntimeSessionCommand } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { identify } from '../../packages/platform/src/kernel/processes/process-table.ts';
import { groupDirectory, readCgroupLayout } from '../../packages/platform/src/kernel/sandbox/host/cgroups.ts';
import { instancePlaces } from '../../packages/platform/src/kernel/sandbox/host/instance.ts';
import { DockerDaemon } from '../../packages/platform/src/kernel/sandbox/testing/docker-daemon.ts';
import { traces } from '../../packages/platform/src/kernel/sandbox/testing/traces.ts';
import { until } from '../../packages/platform/src/kernel/sandbox/testing/until.ts';
import type { Clients } from '../support/clients.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import type { TestPlatform } from '../support/platform-process.ts';
import { ServerGroup } from '../support/server-group.ts';

describe.each([
  { provider: 'oci', open: async () => ({ args: [], stop: async () => undefined }) },
  {
    provider: 'docker',
    open: async () => {
      const daemon = await DockerDaemon.start();
      return { args: ['--sandbox-docker-socket', daemon.socketPath], stop: () => daemon.stop() };
    },
  },
])('two servers with sandboxes of $provider', ({ provider, open }) => {
  let stop: () => Promise<void>;
  let servers: ServerGroup;
  let a: TestPlatform;
  let b: TestPlatform;
  let throughA: Clients;
  let throughB: Clients;
  let arn: string;

  beforeAll(async () => {
    const engine = await open();
    stop = engine.stop;
    servers = await ServerGroup.open({ sandbox: ['--sandbox', provider, ...engine.args], leaseSeconds: 6 });
    ({ a, b, throughA, throughB, arn } = await servers.pair());
  });

  const looking = new AbortController();
  let stalled: number | undefined;
  afterAll(async () => {
    looking.abort();
    // A test that ran out of time may have left it standing.
    if (stalled !== undefined) process.kill(stalled, 'SIGCONT');
    throughA?.close();
    throughB?.close();
    await servers?.close();
    await stop?.();
  });

  const count = async (clients: Clients, session: string): Promise<number> =>
    Number((await invokeJson(clients, arn, session, { do: 'count' })).count);

  /** Sandboxes in which a process lives, by server. Those of b are looked for first: one of a's that ends, and one of b's that begins, while this looks are not two at once. */
  async function living(): Promise<string[]> {
    const layout = await readCgroupLayout();
    const found: string[] = [];
    for (const name of ['b', 'a']) {
      const { cgroupParent } = instancePlaces(await realpath(servers.dataDir(name)), '/run/agentplatform');
      const groups = groupDirectory(layout, cgroupParent);
      for (const id of await readdir(groups, { withFileTypes: true }).catch(() => []))
        if (id.isDirectory() && (await isInhabited(join(groups, id.name)))) found.push(name);
    }
    return found;
  }

  async function isInhabited(group: string): Promise<boolean> {
    const files = await readdir(group, { recursive: true }).catch(() => []);
    for (const file of files.filter((path) => path.endsWith('cgroup.procs'))) {
      const pids = await readFile(join(group, file), 'utf8').catch(() => '');
      for (const pid of pids.split('\n').map(Number)) if (pid > 1 && (await identify(pid))) return true;
    }
    return false;
  }

  /** Looks all the time; resolves, once it is told to stop, to the most that lived at once. */
  async function watch(): Promise<string[]> {
    let most: string[] = [];
    while (!looking.signal.aborted) {
      const now = await living();
      if (now.length > most.length) most = now;
      await sleep(20);
    }
    return most;
  }

  it('a server that stalls past its lease loses its session to another: never two sandboxes at once, none left over', async () => {
    const id = sessionId('stalled');
    for (const expected of [1, 2, 3]) expect(await count(throughA, id)).toBe(expected);
    // The control: what lives on either server is seen.
    const beside = sessionId('beside');
    expect(await count(throughB, beside)).toBe(1);
    expect(await living()).toEqual(['b', 'a']);
    await throughB.data.send(new StopRuntimeSessionCommand({ agentRuntimeArn: arn, runtimeSessionId: beside }));
    await until(async () => (await living()).length === 1);

    const most = watch();
    stalled = a.pid;
    process.kill(stalled, 'SIGSTOP');
    try {
      // Handed on to a server that takes it and says nothing: the caller learns when that one is given up.
      await expect(count(throughB, id)).rejects.toMatchObject({ name: 'ServiceUnavailableException' });
      let taken: number | undefined;
      for (let tries = 0; taken === undefined && tries < 100; tries += 1) {
        taken = await count(throughB, id).catch(() => undefined);
        if (taken === undefined) await sleep(100);
      }
      expect(taken).toBe(1);
      // It has not run since: its sandbox was ended by the sandbox's own owner.
      expect(await living()).toEqual(['b']);
    } finally {
      process.kill(stalled, 'SIGCONT');
      stalled = undefined;
    }
    let again: number | undefined;
    for (let tries = 0; again === undefined && tries < 100; tries += 1) {
      again = await count(throughA, id).catch(() => undefined);
      if (again === undefined) await sleep(100);
    }
    expect(again).toBe(2);
    expect(await count(throughB, id)).toBe(3);
    looking.abort();
    expect(await most).toHaveLength(1);

    // Of the sandbox that ended while its server stood still nothing is left, except what stands ready for others.
    const left = async (): Promise<string[]> => {
      const { directories, groups, runtime, loops, mounts } = await traces(servers.dataDir('a'));
      // Where later mounts of all its sandboxes are to appear.
      const own = mounts.filter((line) => !/\/mounts\/[^/ ]+ /.test(line));
      return [directories, groups, runtime, loops, own].flat();
    };
    await until(async () => (await left()).length === 0).catch(async () => expect(await left()).toEqual([]));
    // Nor of either server, when they have ended.
    await throughA.data.send(new StopRuntimeSessionCommand({ agentRuntimeArn: arn, runtimeSessionId: id }));
    await Promise.all([a.end(), b.end()]);
    for (const name of ['a', 'b'])
      await until(async () => Object.values(await traces(servers.dataDir(name))).flat().length === 0).catch(async () =>
        expect(await traces(servers.dataDir(name))).toEqual({}),
      );
  });
});
