import { afterAll, beforeAll, expect, it } from 'vitest';
import { secretMigrations } from '../../../kernel/secrets/index.ts';
import { storageMigrations } from '../../../kernel/storage/index.ts';
import { describeDatabases } from '../../../kernel/storage/testing/databases.ts';
import type { Oauth2Provider } from '../providers/oauth2-provider.ts';
import { grantId } from './grants.ts';
import type { Grant } from './stored-tokens.ts';
import { flowMigrations } from './tables.ts';
import type { ConsentProvider } from './testing/consent-provider.ts';
import { ACCOUNT, broughtBack, type FlowLab, openConsentLab, RETURN_URL } from './testing/flow-lab.ts';

describeDatabases('grants', [...storageMigrations, ...secretMigrations, ...flowMigrations], (database) => {
  let lab: FlowLab;
  let server: ConsentProvider;
  let provider: Oauth2Provider;

  beforeAll(async () => {
    ({ lab, server, provider } = await openConsentLab(database()));
  });

  afterAll(async () => {
    await lab?.close();
    await server?.close();
  });

  const requestOf = (id: string) => lab.request(provider, { user: { kind: 'id', id } });
  const ask = (id: string, flows = lab.first) => lab.ask(flows, requestOf(id), { returnUrl: RETURN_URL });

  /** A user who has consented; his token and his grant. */
  async function consented(id: string): Promise<{ accessToken: string; grant: Grant }> {
    const { sessionUri = '' } = await lab.ask(lab.first, requestOf(id), { returnUrl: RETURN_URL });
    const back = await lab.back(lab.first, await lab.consent(lab.first, sessionUri));
    await lab.first.federation.complete(broughtBack(back), { userId: id }, lab.caller);
    const { accessToken = '' } = await lab.ask(lab.first, requestOf(id));
    const { grants } = await lab.first.grants.list(ACCOUNT, { userNames: [id] });
    const [grant] = grants;
    if (!grant) throw new Error('there is no grant');
    return { accessToken, grant };
  }

  it('are those of the one user, of the one account, and of no machine', async () => {
    await lab.first.machine(lab.request(provider, { scopes: ['read'] }), lab.caller, lab);
    const { grant } = await consented('ada');
    await consented('bob');
    expect(grant).toMatchObject({
      ...{ workload: 'assistant', userNames: ['ada'], scopes: ['openid', 'read'], providerArn: provider.arn },
    });
    const names = async (filter: object) =>
      (await lab.first.grants.list(ACCOUNT, filter)).grants.map(({ userNames }) => userNames.join());
    expect((await names({})).toSorted()).toEqual(['ada', 'bob']);
    expect(await names({ userNames: ['ada', 'bob'] })).toEqual([]);
    expect(await names({ workload: 'other' })).toEqual([]);
    expect(await names({ provider: provider.name })).toHaveLength(2);
    expect(await names({ provider: 'another' })).toEqual([]);
    expect(await lab.first.grants.list('444455556666', {})).toEqual({ grants: [], next: undefined });
    expect(await lab.first.grants.find(ACCOUNT, grantId(grant.key), { userNames: ['bob'] })).toBeUndefined();
    expect(await lab.first.grants.find('444455556666', grantId(grant.key))).toBeUndefined();
    expect(await lab.first.grants.find(ACCOUNT, grantId(grant.key), { userNames: ['ada'] })).toEqual(grant);
  });

  it('are listed page by page, all of them once, also when one of the last page is taken back meanwhile', async () => {
    for (const id of ['kay', 'lea', 'max']) await consented(id);
    const whole = (await lab.first.grants.list(ACCOUNT, {})).grants.map(({ key }) => key);
    const seen: string[] = [];
    let after: { key: string; grantedAt: number } | undefined;
    do {
      const page = await lab.first.grants.list(ACCOUNT, {}, { limit: 2, after });
      expect(page.grants.length).toBeLessThanOrEqual(2);
      seen.push(...page.grants.map(({ key }) => key));
      const last = page.grants.at(-1);
      if (seen.length === 2 && last) await lab.first.grants.revoke(ACCOUNT, last, lab.signal);
      after = page.next;
    } while (after);
    expect(seen).toEqual(whole);
    expect(whole.length).toBeGreaterThan(3);
    // A last page that is full has none after it.
    expect((await lab.first.grants.list(ACCOUNT, {}, { limit: whole.length - 1 })).next).toBeUndefined();
  });

  it('end here and at the provider, on every server', async () => {
    const { accessToken, grant } = await consented('cy');
    const others = await consented('dan');
    expect(await server.whoIs(accessToken)).toBe('cy');
    expect((await lab.ask(lab.second, requestOf('cy'))).accessToken).toBe(accessToken);
    expect(await lab.first.grants.revoke(ACCOUNT, grant, lab.signal)).toBe('revoked');
    expect(await server.whoIs(accessToken)).toBeUndefined();
    for (const flows of [lab.first, lab.second])
      await expect.poll(async () => (await ask('cy', flows)).accessToken).toBeUndefined();
    // The control: another user's stands.
    expect(await server.whoIs(others.accessToken)).toBe('dan');
    expect((await lab.ask(lab.first, requestOf('dan'))).accessToken).toBe(others.accessToken);
  });

  it('end here also where the provider cannot be told', async () => {
    const { grant } = await consented('eve');
    server.insteadOfRevoking((_req, res) => res.writeHead(503).end());
    try {
      expect(await lab.first.grants.revoke(ACCOUNT, grant, lab.signal)).toBe('failed');
    } finally {
      server.insteadOfRevoking(undefined);
    }
    expect((await ask('eve')).accessToken).toBeUndefined();
    expect(await lab.first.grants.find(ACCOUNT, grantId(grant.key))).toBeUndefined();
  });

  it('are not brought back by a renewal on its way', async () => {
    const { grant } = await consented('fay');
    lab.clock.jump(600_000);
    let answer: (() => void) | undefined;
    let asked: (() => void) | undefined;
    const held = new Promise<void>((done) => {
      asked = done;
    });
    server.instead((_req, res) => {
      answer = () =>
        res.setHeader('content-type', 'application/json').end('{"access_token":"renewed","token_type":"Bearer"}');
      asked?.();
    });
    const renewing = lab.ask(lab.second, requestOf('fay'));
    await held;
    const revoked = lab.first.grants.revoke(ACCOUNT, grant, lab.signal);
    answer?.();
    server.instead(undefined);
    // Whoever had asked before still gets it.
    expect((await renewing).accessToken).toBe('renewed');
    await revoked;
    expect(await lab.first.grants.find(ACCOUNT, grantId(grant.key))).toBeUndefined();
    expect((await ask('fay')).accessToken).toBeUndefined();
  });
});
