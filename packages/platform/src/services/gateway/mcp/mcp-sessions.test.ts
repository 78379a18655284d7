import { Server } from '@modelcontextprotocol/server';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '../../../kernel/auth/index.ts';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { HeldElsewhereError } from '../../../kernel/sessions/index.ts';
import type { Gateway } from '../gateways/gateway.ts';
import { McpSessions } from './mcp-sessions.ts';

const ACCOUNT = '111122223333';
const ARN = `arn:aws:bedrock-agentcore:us-east-1:${ACCOUNT}:gateway`;
const gateway = (id: string, sessionTimeoutInSeconds?: number): Gateway => ({
  ...{ arn: `${ARN}/${id}`, accountId: ACCOUNT, id, name: id, createdAt: 0, updatedAt: 0 },
  definition: {
    ...{ roleArn: 'arn', authorizerType: 'AWS_IAM' },
    protocolConfiguration: { mcp: { sessionConfiguration: { sessionTimeoutInSeconds } } },
  },
});
const user = (name: string): Principal => ({
  ...{ kind: 'iam', accountId: ACCOUNT, arn: `arn:aws:iam::${ACCOUNT}:user/${name}`, accessKeyId: name, tags: {} },
});
const INITIALIZE = {
  ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};
const PING = { jsonrpc: '2.0', id: 2, method: 'ping' };

let clock: FakeClock;
let sessions: McpSessions;
let over: string[];

beforeEach(() => {
  clock = new FakeClock();
  over = [];
  const other = (epoch: number) => (epoch === 7 ? { serverId: 'b', epoch, address: '192.0.2.1:80' } : undefined);
  sessions = new McpSessions({ clock, life: { epoch: 3, other }, onSessionEnd: (id) => void over.push(id) });
});
afterEach(() => sessions.close());

interface Sent {
  as?: Principal;
  at?: Gateway;
  id?: string;
  method?: string;
  body?: object;
  newServer?: () => Promise<Server>;
}

const emptyServer = async (): Promise<Server> =>
  new Server({ name: 'a', version: '1' }, { capabilities: { tools: {} } });

function send(sent: Sent): Promise<Response> {
  const { as = user('alice'), at = gateway('one'), id, method = 'POST', body = PING, newServer = emptyServer } = sent;
  const headers = {
    ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    ...(id !== undefined && { 'mcp-session-id': id }),
  };
  const request = new Request('http://here/mcp', {
    ...{ method, headers },
    ...(method === 'POST' && { body: JSON.stringify(body) }),
  });
  const caller = { principal: as, requestId: 'r', headers: {}, query: new URLSearchParams() };
  const authInfo = { token: '', clientId: '', scopes: [] };
  return sessions.answer(
    { request, body: method === 'POST' ? body : undefined, authInfo },
    { gateway: at, caller, newServer },
  );
}

/** Opens a session, and gives its id. */
async function begin(sent: Sent = {}): Promise<string> {
  const answer = await send({ ...sent, body: INITIALIZE });
  expect(answer.status).toBe(200);
  await answer.text();
  return answer.headers.get('mcp-session-id') ?? '';
}

const statusOf = async (sent: Sent): Promise<number> => {
  const answer = await send(sent);
  await answer.body?.cancel();
  return answer.status;
};

describe('a session', () => {
  it('is entered by who has opened it, at its gateway', async () => {
    const id = await begin();
    expect(await statusOf({ id })).toBe(200);
    expect(await statusOf({ id, as: user('mallory') })).toBe(404);
    expect(await statusOf({ id, at: gateway('other') })).toBe(404);
    expect(await statusOf({ id: `${id}x` })).toBe(404);
    expect(await statusOf({})).toBe(400);
  });

  it('of a gateway that is open to everybody is entered by who knows it, wherever he comes from', async () => {
    const from = (address: string): Principal => ({
      ...{ kind: 'anonymous', accountId: ACCOUNT, acceptedBy: `${ARN}/one`, address },
    });
    const id = await begin({ as: from('192.0.2.1') });
    expect(await statusOf({ id, as: from('192.0.2.2') })).toBe(200);
    expect(await statusOf({ id, as: user('alice') })).toBe(404);
  });

  it('ends by DELETE', async () => {
    const id = await begin();
    expect(await statusOf({ id, method: 'DELETE' })).toBe(200);
    expect(await statusOf({ id })).toBe(404);
    expect(over).toEqual([id]);
  });

  it.each([
    [undefined, 3_600],
    [900, 900],
  ])('ends after its time, whatever is done in it: %s', async (given, seconds) => {
    const at = gateway('one', given);
    const id = await begin({ at });
    await clock.advance((seconds - 1) * 1000);
    expect(await statusOf({ id })).toBe(200);
    await clock.advance(2_000);
    expect(await statusOf({ id })).toBe(404);
    expect(over).toEqual([id]);
  });

  it('of another server is asked for there', () => {
    expect(() => sessions.locate('7.some')).toThrow(HeldElsewhereError);
    for (const id of ['3.some', '8.some', 'some', '', '🙂'.repeat(3)]) expect(() => sessions.locate(id)).not.toThrow();
  });

  it('ends with its gateway: its stream at once, its calls when they are done', async () => {
    const id = await begin();
    const stream = await send({ id, method: 'GET' });
    sessions.endAll(`${ARN}/other`);
    expect(await statusOf({ id })).toBe(200);
    sessions.endAll(`${ARN}/one`);
    expect(await stream.text()).toBe('');
    expect(await statusOf({ id })).toBe(404);
  });
});

describe('a call that is answered as JSON', () => {
  const whole: Gateway = {
    ...gateway('one'),
    definition: {
      ...gateway('one').definition,
      protocolConfiguration: {
        mcp: { sessionConfiguration: {}, streamingConfiguration: { enableResponseStreaming: false } },
      },
    },
  };
  const CALL = { jsonrpc: '2.0', id: 5, method: 'tools/list' };
  let arrived: PromiseWithResolvers<void>;
  /** Never answers a list. */
  const newServer = async (): Promise<Server> => {
    const server = await emptyServer();
    server.setRequestHandler('tools/list', () => {
      arrived.resolve();
      return new Promise(() => undefined);
    });
    return server;
  };

  it.each<[string, (id: string) => Promise<unknown>, number]>([
    ['its client ends the session', (id) => send({ at: whole, id, method: 'DELETE' }), 404],
    ['the time of the session is over', () => clock.advance(3_600_000), 504],
    [
      'its client calls it off, and its time is over',
      async (id) => {
        const params = { requestId: 5 };
        await send({ at: whole, id, body: { jsonrpc: '2.0', method: 'notifications/cancelled', params } });
        await clock.advance(330_000);
      },
      504,
    ],
  ])('ends when %s', async (_what, end, status) => {
    arrived = Promise.withResolvers();
    const id = await begin({ at: whole, newServer });
    const call = statusOf({ at: whole, id, body: CALL });
    await arrived.promise;
    await end(id);
    expect(await call).toBe(status);
  });
});

it('a stream tells of changed lists', async () => {
  const id = await begin();
  const stream = await send({ id, method: 'GET' });
  sessions.tell(`${ARN}/one`);
  const first = await stream.body?.getReader().read();
  expect(Buffer.from(first?.value ?? []).toString()).toContain('notifications/tools/list_changed');
});

describe('one caller', () => {
  it('has no more of them where he opens many at once', async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => send({ body: INITIALIZE })));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(64);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(36);
    expect(over).toEqual([]);
    const ids = answers.flatMap(({ headers }) => headers.get('mcp-session-id') ?? []);
    await Promise.all(answers.map((answer) => answer.text()));
    for (const id of ids) expect(await statusOf({ id })).toBe(200);
  });

  it('has so many sessions at a gateway; the one that was used longest ago gives way', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 64; i++) ids.push(await begin());
    expect(await statusOf({ id: ids[0] ?? '' })).toBe(200);
    const bob = await begin({ as: user('bob') });
    await begin();
    expect(over).toEqual([ids[1]]);
    expect(await statusOf({ id: ids[0] ?? '' })).toBe(200);
    expect(await statusOf({ id: bob, as: user('bob') })).toBe(200);
  });

  it('is refused where all of his are in use, and others are not', async () => {
    for (let i = 0; i < 64; i++) await send({ id: await begin(), method: 'GET' });
    expect(await statusOf({ body: INITIALIZE })).toBe(429);
    expect(await statusOf({ body: INITIALIZE, as: user('bob') })).toBe(200);
    expect(over).toEqual([]);
  });
});
