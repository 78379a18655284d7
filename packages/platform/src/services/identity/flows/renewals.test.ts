import type { RequestListener, ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { secretMigrations } from '../../../kernel/secrets/index.ts';
import { storageMigrations } from '../../../kernel/storage/index.ts';
import { describeDatabases } from '../../../kernel/storage/testing/databases.ts';
import type { Oauth2Provider } from '../providers/oauth2-provider.ts';
import { Refreshes } from './refreshes.ts';
import { flowMigrations } from './tables.ts';
import type { ConsentProvider } from './testing/consent-provider.ts';
import { ACCOUNT, broughtBack, type FlowLab, openConsentLab, RETURN_URL } from './testing/flow-lab.ts';

const CHANGED = { code: 'ThrottlingException', message: expect.stringContaining('was changed while') };
const LOST = 'whose renewal was cut off';

describeDatabases('renewals', [...storageMigrations, ...secretMigrations, ...flowMigrations], (database) => {
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

  const requestOf = (id: string, of = provider) => lab.request(of, { user: { kind: 'id', id } });
  const ask = async (id: string, flows = lab.first) => lab.ask(flows, requestOf(id), { returnUrl: RETURN_URL });

  async function consented(id: string): Promise<string> {
    const { sessionUri = '' } = await ask(id);
    const back = await lab.back(lab.first, await lab.consent(lab.first, sessionUri));
    await lab.first.federation.complete(broughtBack(back), { userId: id }, lab.caller);
    return (await ask(id)).accessToken ?? '';
  }

  /** The provider is asked, and answers when it is told to. */
  function held(): { asked: Promise<void>; answer(): void } {
    const asked = Promise.withResolvers<void>();
    let waiting: ServerResponse | undefined;
    server.instead((_req, res) => {
      waiting = res;
      asked.resolve();
    });
    return {
      asked: asked.promise,
      answer() {
        server.instead(undefined);
        const token = { access_token: 'renewed', token_type: 'Bearer', expires_in: 600, refresh_token: 'rotated' };
        waiting?.setHeader('content-type', 'application/json').end(JSON.stringify(token));
      },
    };
  }

  const stored = async (of: string): Promise<number> =>
    (await database().query(`SELECT key FROM identity_tokens WHERE user_names = $1::jsonb`, [of])).length;

  type Ending = [what: string, end: () => Promise<unknown>, again: () => Promise<unknown>];
  const endings: Ending[] = [
    [
      'another client of the provider',
      () => database().transaction((tx) => lab.first.forget({ providerId: provider.data.id }, tx)),
      async () => undefined,
    ],
    ['a reset of the vault', () => lab.vaults.reset(ACCOUNT), async () => undefined],
    [
      'the end of the agent',
      () =>
        lab.identities.delete(ACCOUNT, 'assistant', (tx) =>
          lab.first.forget({ accountId: ACCOUNT, workload: 'assistant' }, tx),
        ),
      () => lab.workload('assistant'),
    ],
  ];

  it.each(endings)(
    'that are on their way are not written after %s, of a user and of an agent itself',
    async (what, end, again) => {
      await consented(what);
      lab.clock.jump(600_000);
      const renewal = held();
      const renewing = ask(what, lab.second);
      renewing.catch(() => undefined);
      await renewal.asked;
      await end();
      renewal.answer();
      await expect(renewing).rejects.toMatchObject(CHANGED);
      expect(await stored(JSON.stringify([what]))).toBe(0);

      await again();
      const own = lab.request(provider, { scopes: ['read'], customParameters: { what } });
      const first = held();
      const machine = lab.second.machine(own, lab.caller, lab);
      machine.catch(() => undefined);
      await first.asked;
      await end();
      first.answer();
      await expect(machine).rejects.toMatchObject(CHANGED);
      expect(await stored('[]')).toBe(0);
      // The control: with nothing in between it is written, and given from there.
      await again();
      const token = await lab.second.machine(own, lab.caller, lab);
      expect(await stored('[]')).toBe(1);
      expect(await lab.first.machine(own, lab.caller, lab)).toBe(token);
      await consented(what);
    },
  );

  it('of a consent that was given anew are not written over it', async () => {
    await consented('anew');
    lab.clock.jump(600_000);
    const begun = await lab.ask(lab.first, requestOf('anew'), { returnUrl: RETURN_URL, force: true });
    const back = await lab.back(lab.first, await lab.consent(lab.first, begun.sessionUri ?? ''));
    const renewal = held();
    const renewing = ask('anew', lab.second);
    renewing.catch(() => undefined);
    await renewal.asked;
    const { answer } = renewal;
    // The new consent is redeemed by the provider itself.
    server.instead(undefined);
    await lab.first.federation.complete(broughtBack(back), { userId: 'anew' }, lab.caller);
    answer();
    await expect(renewing).rejects.toMatchObject(CHANGED);
    expect(await server.whoIs((await ask('anew', lab.second)).accessToken ?? '')).toBe('anew');
  });

  it('ask as the client that the provider has, though it was another when they were asked for', async () => {
    const request = lab.request(provider, { scopes: ['read'], customParameters: { stale: 'yes' } });
    const stale = { ...request, provider: { ...provider, data: { ...provider.data, clientId: 'another-client' } } };
    expect(await server.isActive(await lab.first.machine(stale, lab.caller, lab))).toBe(true);
    const gone = { ...request, provider: { ...provider, name: 'gone' }, scopes: ['write'] };
    await expect(lab.first.machine(gone, lab.caller, lab)).rejects.toMatchObject(CHANGED);
  });

  it('take a token that cannot be opened any more for none', async () => {
    const own = lab.request(provider, { scopes: ['write'] });
    const token = await lab.first.machine(own, lab.caller, lab);
    expect(await lab.first.machine(own, lab.caller, lab)).toBe(token);
    // As a server that wrote it while another reset the vault.
    await database().execute(
      `UPDATE identity_tokens SET sealed = 'another-key.' || sealed WHERE user_names = '[]' AND scopes = '["write"]'`,
    );
    const renewed = lab.first.machine(own, lab.caller, lab);
    expect(await renewed).not.toBe(token);
    expect(await server.isActive(await renewed)).toBe(true);
  });

  const intents = async (id: string): Promise<number> =>
    (
      await database().query(
        'SELECT key FROM identity_tokens WHERE user_names = $1::jsonb AND renewing_since IS NOT NULL',
        [JSON.stringify([id])],
      )
    ).length;
  const cutOff: RequestListener = (req) => req.destroy();
  /** The provider rotates the refresh token, and its answer reaches nobody. */
  const rotatesAndIsCutOff: RequestListener = (req, _res) => {
    const parts: Buffer[] = [];
    req.on('data', (part: Buffer) => parts.push(part));
    req.on('end', async () => {
      server.instead(undefined);
      const { authorization = '', 'content-type': type = '' } = req.headers;
      const headers = { authorization, 'content-type': type };
      const answer = await fetch(`${server.issuer}/token`, { method: 'POST', headers, body: Buffer.concat(parts) });
      expect(await answer.json()).toMatchObject({ refresh_token: expect.any(String) });
      req.socket.destroy();
    });
  };

  it('are written down before they are asked for, and go on with the old refresh token after an end in the middle', async () => {
    await consented('cut');
    lab.clock.jump(600_000);
    let before = 0;
    server.instead(async (req) => {
      before = await intents('cut');
      req.destroy();
    });
    await expect(ask('cut')).rejects.toMatchObject({ kind: 'unreachable' });
    expect(before).toBe(1);
    // A second time: since the first.
    server.instead(cutOff);
    await expect(ask('cut', lab.second)).rejects.toMatchObject({ kind: 'unreachable' });
    server.instead(undefined);
    expect(await intents('cut')).toBe(1);
    // The provider has not seen it, or lets it count twice.
    expect(await server.whoIs((await ask('cut', lab.second)).accessToken ?? '')).toBe('cut');
    expect(await intents('cut')).toBe(0);
  });

  it('whose rotated refresh token is lost begin the consent again, and the operator learns why', async () => {
    await consented('lost');
    lab.clock.jump(600_000);
    server.instead(rotatesAndIsCutOff);
    await expect(ask('lost')).rejects.toMatchObject({ kind: 'unreachable' });
    expect(await intents('lost')).toBe(1);
    const told = () => lab.warnings.filter((line) => line.includes(LOST)).length;
    expect(told()).toBe(0);
    expect(await ask('lost', lab.second)).toMatchObject({
      sessionStatus: 'FAILED',
      authorizationUrl: expect.any(String),
    });
    expect(told()).toBe(1);
    // The control: a consent that its user took back is lost to nobody.
    await consented('back');
    lab.clock.jump(600_000);
    await ask('back');
    await server.revoke(server.asked.at(-1)?.get('refresh_token') ?? '');
    lab.clock.jump(600_000);
    expect(await ask('back')).toMatchObject({ sessionStatus: 'FAILED' });
    expect(told()).toBe(1);
  });

  it('that a provider refuses for another reason leave no word of themselves', async () => {
    await consented('refused');
    lab.clock.jump(600_000);
    server.instead((_req, res) => res.writeHead(401).end('{"error":"invalid_client"}'));
    await expect(ask('refused')).rejects.toMatchObject({ kind: 'refused', code: 'invalid_client' });
    server.instead(undefined);
    expect(await intents('refused')).toBe(0);
    expect(await server.whoIs((await ask('refused')).accessToken ?? '')).toBe('refused');
  });

  it('are held by no server that has started anew', async () => {
    const deps = { database: database(), clock: lab.clock };
    const [dead, other] = [new Refreshes({ ...deps, serverId: 'dead' }), new Refreshes({ ...deps, serverId: 'other' })];
    const holdOf = (key: string) => ({ key, accountId: ACCOUNT, providerId: 'p', workload: 'w' });
    const never = Promise.withResolvers<never>();
    const hold = async (server: Refreshes, key: string) => {
      const began = Promise.withResolvers<void>();
      const work = () => {
        began.resolve();
        return never.promise;
      };
      void server.exclusively(holdOf(key), work, lab.signal).catch(() => undefined);
      await began.promise;
    };
    await hold(dead, 'its');
    await hold(other, 'theirs');
    const reborn = new Refreshes({ ...deps, serverId: 'dead' });
    await reborn.start();
    expect(await reborn.exclusively(holdOf('its'), async () => 'mine', lab.signal)).toBe('mine');
    const rows = await database().query<{ key: string }>(
      `SELECT key FROM identity_refreshes WHERE key IN ('its', 'theirs')`,
    );
    expect(rows.map(({ key }) => key)).toEqual(['theirs']);
  });
});
