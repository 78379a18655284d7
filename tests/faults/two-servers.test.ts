import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PassThrough, type Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  InvokeAgentRuntimeCommand,
  InvokeAgentRuntimeCommandCommand,
  StopRuntimeSessionCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeJson, invokeText, sessionId } from '../support/invoke.ts';
import type { TestPlatform } from '../support/platform-process.ts';
import { ServerGroup } from '../support/server-group.ts';
import { endpointOf, send, sendSigned, signed, withEndpointAgent } from '../support/session-endpoint.ts';
import { Stream, StreamSigner } from '../support/websocket.ts';

const root = resolve(import.meta.dirname, '../..');

let servers: ServerGroup;
let a: TestPlatform;
let b: TestPlatform;
let throughA: Clients;
let throughB: Clients;
let arn: string;

beforeAll(async () => {
  servers = await ServerGroup.open({ sandbox: ['--sandbox', 'process'], leaseSeconds: 8 });
  ({ a, b, throughA, throughB, arn } = await servers.pair());
});

afterAll(async () => {
  throughA?.close();
  throughB?.close();
  await servers?.close();
});

/** Sandboxes of a server that exist now; ids of agents that stand ready are among them. */
const sandboxesOf = (name: string): Promise<string[]> =>
  readdir(join(servers.dataDir(name), 'processes')).catch(() => []);

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

  it('answer a repeated token as the first time, where the other did the work', async () => {
    const runtimeSessionId = sessionId('token');
    const clientToken = 'stop-once-4'.repeat(4);
    const stop = (clients: Clients, more: object = {}) =>
      clients.data.send(
        new StopRuntimeSessionCommand({ agentRuntimeArn: arn, runtimeSessionId, clientToken, ...more }),
      );
    expect(await count(throughA, runtimeSessionId)).toBe(1);
    const first = await stop(throughB);
    expect(await count(throughA, runtimeSessionId)).toBe(1);
    expect(await stop(throughB)).toMatchObject({ runtimeSessionId: first.runtimeSessionId, statusCode: 200 });
    // What has the id by now was not stopped.
    expect(await count(throughA, runtimeSessionId)).toBe(2);
  });

  it('hand on WebSockets, long bodies as they come, and commands, both ways, to the one that has the session', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'stream-agent-'));
    await cp(join(root, 'tests/support/stream-agent'), folder, { recursive: true });
    await cp(join(root, 'node_modules/ws'), join(folder, 'node_modules/ws'), { recursive: true });
    const agent = await deployAgent(a, throughA, { folder }).finally(() => rm(folder, { recursive: true }));
    const session = sessionId('handed');
    const before = { a: await sandboxesOf('a'), b: await sandboxesOf('b') };
    const invoke = async (clients: Clients, payload: Uint8Array | Readable): Promise<Readable> => {
      const named = { agentRuntimeArn: agent.arn, runtimeSessionId: session, contentType: 'application/octet-stream' };
      return (await clients.data.send(new InvokeAgentRuntimeCommand({ ...named, payload }))).response as Readable;
    };
    for await (const _ of await invoke(throughA, Buffer.from('begin')));
    // The control: the session is on one, and it is the other that is asked from here on.
    expect((await sandboxesOf('a')).length).toBe(before.a.length + 1);

    const stream = await new StreamSigner(b, a.credentials).open({ arn: agent.arn }, session);
    expect(await stream.ask('é𝄞')).toBe('é𝄞');
    const bytes = randomBytes(2 ** 20);
    stream.socket.send(bytes);
    expect((await stream.next()).equals(bytes)).toBe(true);
    stream.socket.send('close 4321 enough of it');
    expect(await stream.closed).toEqual({ code: 4321, reason: 'enough of it' });

    const payload = new PassThrough();
    const [sent, received] = [createHash('sha256'), createHash('sha256')];
    const send = (part: Buffer): boolean => {
      sent.update(part);
      return payload.write(part);
    };
    send(randomBytes(1000));
    const answer = await invoke(throughB, payload);
    let length = 0;
    const reading = answer[Symbol.asyncIterator]();
    const read = ({ value }: IteratorResult<Buffer>): void => {
      length += value.length;
      received.update(value);
    };
    // What the agent answered is here before it has the rest.
    while (length < 1000) read(await reading.next());
    const sending = (async () => {
      for (let part = 0; part < 320; part += 1)
        if (!send(randomBytes(65_536))) await new Promise((done) => payload.once('drain', done));
      payload.end();
    })();
    for (let next = await reading.next(); !next.done; next = await reading.next()) read(next);
    await sending;
    expect(length).toBe(1000 + 20 * 2 ** 20);
    expect(received.digest('hex')).toBe(sent.digest('hex'));

    const { stream: events } = await throughB.data.send(
      new InvokeAgentRuntimeCommandCommand({
        agentRuntimeArn: agent.arn,
        runtimeSessionId: session,
        body: { command: 'echo "$TMPDIR"; echo warning >&2; exit 3' },
      }),
    );
    const said = { stdout: '', stderr: '', exitCode: -1 };
    for await (const { chunk } of events ?? []) {
      said.stdout += chunk?.contentDelta?.stdout ?? '';
      said.stderr += chunk?.contentDelta?.stderr ?? '';
      said.exitCode = chunk?.contentStop?.exitCode ?? said.exitCode;
    }
    expect(said).toEqual({
      stdout: expect.stringContaining(servers.dataDir('a')),
      stderr: 'warning\n',
      exitCode: 3,
    });
    expect(await sandboxesOf('b')).toEqual(before.b);
  });

  it('hand on what comes to a session at its own address, and its answers, as they are', async () => {
    const port = 11_951;
    const { arn } = await withEndpointAgent((folder) =>
      deployAgent(a, throughA, {
        ...{ folder, environmentVariables: { APPLICATION_PORT: String(port) }, newer: { allowedPorts: [{ port }] } },
      }),
    );
    const there = `${await endpointOf(throughA, arn, sessionId('address'))}/${port}`;
    const here = there.replace(new URL(there).origin, b.ready.endpoint);
    const { credentials } = a;
    const body = randomBytes(300_000);
    const headers = { 'content-length': String(body.length), 'x-mine': 'yes' };
    const told = await sendSigned(b, `${here}/a?b=1`, { method: 'PUT', headers, body, credentials });
    expect([told.status, JSON.parse(told.text)]).toMatchObject([
      200,
      {
        method: 'PUT',
        url: '/a?b=1',
        bytes: body.length,
        sha256: createHash('sha256').update(body).digest('hex'),
        headers,
      },
    ]);
    expect(JSON.parse(told.text).headers).not.toHaveProperty('x-agentplatform-peer');
    const page = await sendSigned(b, `${here}/page`, { credentials });
    expect(page.headers['set-cookie']).toEqual(['theirs=1; Path=/', 'other=2']);
    const presigned = await signed(b, `${here}/page`, { credentials }, true);
    expect((await send(presigned.url)).headers['content-security-policy']).toContain('sandbox');
    const opening = await signed(b, here, { credentials });
    const stream = await Stream.open(here.replace('http', 'ws'), [], { headers: opening.headers });
    expect(await stream.ask('é𝄞')).toBe('é𝄞');
    stream.socket.close();
    expect((await send(here)).status).toBe(403);
    const nowhere = here.replace(/s-[a-z0-9]{16}/, `s-${'0'.repeat(16)}`);
    expect((await sendSigned(b, nowhere, { credentials })).status).toBe(404);
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
    a = await servers.start('a');
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
    const before = await sandboxesOf('a');
    await a.end('SIGKILL');
    let taken: number | undefined;
    for (let tries = 0; taken === undefined && tries < 400; tries += 1) {
      taken = await count(throughB, id).catch(() => undefined);
      if (taken === undefined) await sleep(100);
    }
    expect(taken).toBe(1);
    // Every agent of the server that was killed is gone, though it never came back to end them.
    const left = execFileSync('sh', ['-c', `pgrep -f "^perl .*process-owner.pl ${servers.dataDir('a')}/" || true`]);
    expect(left.toString()).toBe('');
    expect(before.length).toBeGreaterThan(0);
    throughA.close();
    a = await servers.start('a');
    throughA = clientsOf(a);
    // It finds that its sessions are another's, and hands calls on.
    expect(await count(throughA, id)).toBe(2);
  });
});
