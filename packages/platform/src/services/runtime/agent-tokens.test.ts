import { describe, expect, it } from 'vitest';
import { CARRIED_SESSION_HEADER, type Principal } from '../../kernel/auth/index.ts';
import { FakeClock } from '../../kernel/fake-clock.ts';
import { WorkloadTokens } from '../identity/workloads/workload-tokens.ts';
import { AgentTokens } from './agent-tokens.ts';
import { USER_HEADER } from './container-headers.ts';

const accountId = '111122223333';
const runtime = { accountId, id: 'agent-0123456789' };
const HOUR_MS = 3_600_000;
const DOCUMENT = 'https://login.example/.well-known/openid-configuration';
const signed: Principal = {
  kind: 'iam',
  accountId,
  arn: 'arn:aws:iam::111122223333:root',
  accessKeyId: 'AKIA',
  tags: {},
};

const asUser = (id: string) => ({ principal: signed, headers: { [USER_HEADER]: id } });
const asBearer = (subject: string, vouchedBy = 'https://login.example', issuer = vouchedBy, token = 't') => ({
  principal: {
    kind: 'oauth',
    accountId,
    issuer,
    vouchedBy,
    discoveryUrl: DOCUMENT,
    subject,
    claims: {},
    token,
    digest: token,
  } as const,
  headers: {},
});

function setUp() {
  const clock = new FakeClock();
  const find = async () => ({ createdAt: 1, owner: 'the runtime' });
  const tokens = new WorkloadTokens({ key: new Uint8Array(32).fill(7), lifeMs: HOUR_MS, find, clock });
  let issued = 0;
  const issueToken: WorkloadTokens['issue'] = (bearer) => {
    issued += 1;
    return tokens.issue(bearer);
  };
  const tokensOfAgents = new AgentTokens({ issueToken }, clock);
  return {
    clock,
    issued: () => issued,
    of: tokensOfAgents.of.bind(tokensOfAgents),
    open: (token: string) => tokens.open(token, accountId),
  };
}

describe('the tokens of agents', () => {
  it('have the policy session that a gateway has sealed, each of its own, and nothing that cannot be one', async () => {
    const { of, open } = setUp();
    const session = async (sealed?: string) => {
      const headers = sealed === undefined ? {} : { [CARRIED_SESSION_HEADER]: sealed };
      return (await open(of(runtime, { principal: signed, headers }))).policySession;
    };
    for (const sealed of ['a'.repeat(60), 'b'.repeat(60)]) expect(await session(sealed)).toBe(sealed);
    for (const none of [undefined, 'short', 'a b'.repeat(30), 'a'.repeat(1_537)])
      expect(await session(none)).toBeUndefined();
  });

  it('name the agent, and the user of this very call', async () => {
    const { of, open } = setUp();
    const opened = async (caller: Parameters<typeof of>[1]) => open(of(runtime, caller));
    const none = { principal: signed, headers: {} };
    expect(await opened(none)).toMatchObject({ accountId, workload: runtime.id, user: undefined });
    expect((await opened({ principal: signed, headers: { [USER_HEADER]: '' } })).user).toBeUndefined();
    expect((await opened(asUser('ada'))).user).toEqual({ kind: 'id', id: 'ada' });
    const bearer = { kind: 'token', issuer: 'https://login.example', subject: 'ada' };
    expect((await opened(asBearer('ada'))).user).toEqual(bearer);
    // The header of a bearer is his subject or was refused; it does not make him another kind of user.
    expect((await opened({ ...asBearer('ada'), headers: { [USER_HEADER]: 'ada' } })).user).toEqual(bearer);
    // The runtime's owner chose a document that names an issuer which is not its own.
    const document = 'https://mallory.example/.well-known/openid-configuration';
    expect((await opened(asBearer('ada', document, 'https://login.example'))).user).toEqual({
      ...bearer,
      issuer: document,
    });
    // Tokens of programs have no subject: they are not all one user.
    expect((await opened(asBearer(''))).user).toBeUndefined();
  });

  it("never hand a user another's token, in whatever order they call", async () => {
    const { of, open } = setUp();
    const callers = [asUser('ada'), asUser('bob'), asBearer('ada'), asBearer('ada', 'https://other.example')];
    const expected = await Promise.all(callers.map(async (one) => (await open(of(runtime, one))).user));
    expect(new Set(expected.map((user) => JSON.stringify(user))).size).toBe(callers.length);
    for (const at of [0, 1, 0, 2, 0, 3, 2, 1, 3, 0, 0, 1, 1]) {
      const caller = callers[at];
      if (caller) expect((await open(of(runtime, caller))).user).toEqual(expected[at]);
    }
  });

  it("carry the user's own token of this very call, and none for a user whom a caller names", async () => {
    const { of, open, issued } = setUp();
    const carried = async (caller: Parameters<typeof of>[1]) => (await open(of(runtime, caller))).subjectToken;
    const withToken = (token: string) => asBearer('ada', undefined, undefined, token);
    expect(await carried(withToken('first'))).toEqual({ token: 'first', discoveryUrl: DOCUMENT });
    expect(await carried(withToken('renewed'))).toEqual({ token: 'renewed', discoveryUrl: DOCUMENT });
    expect(await carried(withToken('first'))).toEqual({ token: 'first', discoveryUrl: DOCUMENT });
    expect(issued()).toBe(2);
    expect(await carried(asUser('ada'))).toBeUndefined();
    expect(await carried(asBearer(''))).toBeUndefined();
    expect(await carried(withToken('x'.repeat(4096)))).toMatchObject({ token: 'x'.repeat(4096) });
    expect(await carried(withToken('x'.repeat(4097)))).toEqual({ token: undefined, discoveryUrl: DOCUMENT });
    expect(of(runtime, withToken('x'.repeat(4096))).length).toBeLessThan(8192);
  });

  it('are at hand for those who called last, of whom there is a bound', () => {
    const { of, issued } = setUp();
    for (let user = 0; user <= 1000; user += 1) of(runtime, asUser(`user-${user}`));
    expect(issued()).toBe(1001);
    of(runtime, asUser('user-1000'));
    expect(issued()).toBe(1001);
    of(runtime, asUser('user-0'));
    expect(issued()).toBe(1002);
  });

  it('are sealed once per agent and user, and anew when half of their time is over', async () => {
    const { of, open, issued, clock } = setUp();
    const first = of(runtime, asUser('ada'));
    for (let i = 0; i < 10; i += 1) expect(of(runtime, asUser('ada'))).toBe(first);
    expect(issued()).toBe(1);
    expect(of({ ...runtime, id: 'other-0123456789' }, asUser('ada'))).not.toBe(first);
    expect(issued()).toBe(2);
    clock.jump(HOUR_MS / 2 - 1);
    expect(of(runtime, asUser('ada'))).toBe(first);
    clock.jump(1);
    const second = of(runtime, asUser('ada'));
    expect(second).not.toBe(first);
    clock.jump(HOUR_MS / 2);
    await expect(open(first)).rejects.toMatchObject({ code: 'UnauthorizedException' });
    expect((await open(second)).user).toEqual({ kind: 'id', id: 'ada' });
  });
});
