import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { WorkloadTokens } from './workload-tokens.ts';
import type { WorkloadUser } from './workload-user.ts';

const ACCOUNT = '111122223333';
const OTHER = '444455556666';
const HOUR_MS = 3_600_000;
const REFUSED = { code: 'UnauthorizedException', message: expect.stringContaining('is not one for this account') };
const ada: WorkloadUser = { kind: 'id', id: 'ada' };

/** Tokens of accounts in which there are identities of these names, made at these times; `crm` came with a resource. */
function setUp(identities: Record<string, number> = { crm: 1 }, key: Uint8Array = randomBytes(32)) {
  const clock = new FakeClock();
  const owners: Record<string, string> = { crm: 'arn:aws:bedrock-agentcore:us-east-1:111122223333:runtime/crm' };
  const find = async (_account: string, name: string) => {
    const createdAt = identities[name];
    return createdAt === undefined ? undefined : { createdAt, owner: owners[name] };
  };
  return { clock, identities, owners, tokens: new WorkloadTokens({ key, lifeMs: HOUR_MS, find, clock }) };
}

describe('a workload access token', () => {
  it('says to its own platform alone who works for whom', async () => {
    const { tokens } = setUp();
    for (const user of [undefined, ada, { kind: 'token', issuer: 'https://login.example', subject: 'ada' } as const]) {
      const { token } = tokens.issue({ accountId: ACCOUNT, workload: 'crm', user, madeAt: 1 });
      expect(await tokens.open(token, ACCOUNT)).toEqual({ accountId: ACCOUNT, workload: 'crm', user, madeAt: 1 });
      const bytes = Buffer.from(token, 'base64url').toString('latin1');
      for (const told of [ACCOUNT, 'crm', 'ada', 'login']) expect(bytes).not.toContain(told);
    }
    const { token } = tokens.issue({ accountId: ACCOUNT, workload: 'crm', user: ada });
    await expect(setUp().tokens.open(token, ACCOUNT)).rejects.toMatchObject(REFUSED);
  });

  it('brings a policy session on unread, with and without a token of the user', async () => {
    const { tokens } = setUp();
    const bearer = { accountId: ACCOUNT, workload: 'crm', user: ada, madeAt: 1, policySession: 'sealed' };
    const subjectToken = { token: 't', discoveryUrl: 'https://login.example' };
    for (const one of [bearer, { ...bearer, subjectToken }])
      expect(await tokens.open(tokens.issue(one).token, ACCOUNT)).toEqual(one);
  });

  it('has one bound for all that travels in it: a token of 4 KB and a policy session together fit', async () => {
    const { tokens } = setUp();
    const letters = (length: number) => randomBytes(length).toString('base64url').slice(0, length);
    const user = { kind: 'token', issuer: 'https://login.example/realms/one', subject: letters(36) } as const;
    const subjectToken = { token: letters(4096), discoveryUrl: 'https://login.example/realms/one/.well-known' };
    const bearer = { accountId: ACCOUNT, workload: 'crm', user, madeAt: 1, subjectToken };
    // As long as each may be by itself.
    const full = { ...bearer, policySession: letters(1536) };
    const { token } = tokens.issue(full);
    expect(await tokens.open(token, ACCOUNT)).toEqual(full);
    expect(token.length).toBeLessThanOrEqual(7168);
    const long = { ...full, user: { ...user, subject: letters(2000) } };
    const shorter = tokens.issue(long).token;
    expect(shorter.length).toBeLessThanOrEqual(7168);
    expect(await tokens.open(shorter, ACCOUNT)).toEqual({
      ...long,
      subjectToken: { ...subjectToken, token: undefined },
    });
    const unheard = { ...full, user: { kind: 'id', id: '\u0001'.repeat(2048) } } as const;
    expect(() => tokens.issue({ ...unheard, policySession: letters(4000) })).toThrow(/more than 7168 characters/);
  });

  it('brings any user back as he was, and keeps the two kinds apart', async () => {
    const { tokens } = setUp();
    const text = fc.oneof(fc.string({ minLength: 1 }), fc.constantFrom('é𝄞', '\ud800', '\0', '","', 'null'));
    const user: fc.Arbitrary<WorkloadUser> = fc.oneof(
      text.map((id) => ({ kind: 'id' as const, id })),
      fc.tuple(text, text).map(([issuer, subject]) => ({ kind: 'token' as const, issuer, subject })),
    );
    await fc.assert(
      fc.asyncProperty(user, async (one) => {
        const { token } = tokens.issue({ accountId: ACCOUNT, workload: 'crm', user: one });
        expect((await tokens.open(token, ACCOUNT)).user).toEqual(one);
      }),
    );
  });

  it('is refused in another account', async () => {
    const { tokens } = setUp();
    const { token } = tokens.issue({ accountId: ACCOUNT, workload: 'crm', user: ada });
    expect((await tokens.open(token, ACCOUNT)).user).toEqual(ada);
    await expect(tokens.open(token, OTHER)).rejects.toMatchObject(REFUSED);
  });

  it('ends with its identity, and is none of a later one of the same name', async () => {
    const { tokens, identities } = setUp();
    const { token } = tokens.issue({ accountId: ACCOUNT, workload: 'crm', user: ada, madeAt: 1 });
    expect((await tokens.open(token, ACCOUNT)).workload).toBe('crm');
    identities.crm = 2;
    await expect(tokens.open(token, ACCOUNT)).rejects.toMatchObject(REFUSED);
    delete identities.crm;
    await expect(tokens.open(token, ACCOUNT)).rejects.toMatchObject(REFUSED);
  });

  it('of a resource is none of an identity that a caller makes under the name of the one that was', async () => {
    const { tokens, owners } = setUp();
    const ofResource = tokens.issue({ accountId: ACCOUNT, workload: 'crm', user: ada }).token;
    const ofMaking = tokens.issue({ accountId: ACCOUNT, workload: 'crm', user: ada, madeAt: 1 }).token;
    expect((await tokens.open(ofResource, ACCOUNT)).user).toEqual(ada);
    delete owners.crm;
    await expect(tokens.open(ofResource, ACCOUNT)).rejects.toMatchObject(REFUSED);
    expect((await tokens.open(ofMaking, ACCOUNT)).user).toEqual(ada);
  });

  it('is refused from the moment when it expires', async () => {
    const { tokens, clock } = setUp();
    const { token, expiresAt } = tokens.issue({ accountId: ACCOUNT, workload: 'crm', user: ada });
    expect(expiresAt).toBe(clock.now() + HOUR_MS);
    clock.jump(HOUR_MS - 1);
    expect((await tokens.open(token, ACCOUNT)).user).toEqual(ada);
    clock.jump(1);
    await expect(tokens.open(token, ACCOUNT)).rejects.toMatchObject(REFUSED);
  });

  it('is refused with any letter altered, added or left out', async () => {
    const { tokens } = setUp();
    const { token } = tokens.issue({ accountId: ACCOUNT, workload: 'crm', user: ada });
    expect((await tokens.open(token, ACCOUNT)).user).toEqual(ada);
    for (let at = 0; at < token.length; at += 1) {
      const altered = `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`;
      await expect(tokens.open(altered, ACCOUNT), `letter ${at}`).rejects.toMatchObject(REFUSED);
      await expect(tokens.open(token.slice(0, at), ACCOUNT)).rejects.toMatchObject(REFUSED);
    }
    for (const more of ['=', '.', 'A', ' ', '\n'])
      await expect(tokens.open(token + more, ACCOUNT)).rejects.toMatchObject(REFUSED);
  });

  it('is nothing that somebody makes up', async () => {
    const { tokens } = setUp();
    const anything = fc.oneof(fc.string(), fc.base64String(), fc.string({ minLength: 8000, maxLength: 9000 }));
    await fc.assert(
      fc.asyncProperty(anything, async (text) => {
        await expect(tokens.open(text, ACCOUNT)).rejects.toMatchObject(REFUSED);
      }),
      { numRuns: 50 },
    );
  });

  it('fits a header whatever its user is called, or is not made', () => {
    const { tokens } = setUp();
    const of = (user: WorkloadUser) => tokens.issue({ accountId: ACCOUNT, workload: 'w'.repeat(255), user }).token;
    // As long as the wire takes user ids, every letter of two bytes.
    expect(of({ kind: 'id', id: 'é'.repeat(1024) }).length).toBeLessThan(4096);
    const tooLong = { code: 'ValidationException', message: expect.stringContaining('too long') };
    expect(() => of({ kind: 'id', id: 'é'.repeat(1025) })).toThrow(expect.objectContaining(tooLong));
    const issuer = 'https://login.example';
    expect(() => of({ kind: 'token', issuer, subject: 'x'.repeat(2048) })).toThrow(expect.objectContaining(tooLong));
  });
});
