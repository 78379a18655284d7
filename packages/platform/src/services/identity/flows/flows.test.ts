import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { secretMigrations } from '../../../kernel/secrets/index.ts';
import { storageMigrations } from '../../../kernel/storage/index.ts';
import { describeDatabases } from '../../../kernel/storage/testing/databases.ts';
import type { Oauth2Provider } from '../providers/oauth2-provider.ts';
import { flowMigrations, flowRetention } from './tables.ts';
import type { ConsentProvider } from './testing/consent-provider.ts';
import { ACCOUNT, broughtBack, type FlowLab, openConsentLab, RETURN_URL } from './testing/flow-lab.ts';

const BEGIN_AGAIN = { code: 'ValidationException', message: expect.stringContaining('must begin again') };

describeDatabases('the flows', [...storageMigrations, ...secretMigrations, ...flowMigrations], (database) => {
  let lab: FlowLab;
  let server: ConsentProvider;
  let provider: Oauth2Provider;
  const user = (id: string) => ({ kind: 'id', id }) as const;
  const complete = (sessionUri: string, userId: string, flows = lab.first) =>
    flows.federation.complete(sessionUri, { userId }, lab.caller);

  beforeAll(async () => {
    ({ lab, server, provider } = await openConsentLab(database()));
  });

  afterAll(async () => {
    await lab?.close();
    await server?.close();
  });

  /** A user who has consented, and whose application has confirmed it. */
  async function consented(id: string): Promise<string> {
    const request = lab.request(provider, { user: user(id) });
    const { sessionUri = '' } = await lab.ask(lab.first, request, { returnUrl: RETURN_URL });
    const back = await lab.back(lab.first, await lab.consent(lab.first, sessionUri));
    await complete(broughtBack(back), id);
    return (await lab.ask(lab.first, request)).accessToken ?? '';
  }

  it('ask once for a thousand who wait for an expired token, on two servers', async () => {
    const request = lab.request(provider, { scopes: ['read'] });
    const get = (flows = lab.first) => flows.machine(request, lab.caller, lab);
    const before = server.asked.length;
    const first = await get();
    expect(await get(lab.second)).toBe(first);
    expect(server.asked.length).toBe(before + 1);
    lab.clock.jump(600_000);
    const waiters = Array.from({ length: 1000 }, (_, at) => get(at % 2 === 0 ? lab.first : lab.second));
    const [renewed, ...others] = await Promise.all(waiters);
    expect(renewed).not.toBe(first);
    for (const other of others) expect(other).toBe(renewed);
    expect(server.asked.length).toBe(before + 2);
  });

  it('renew ahead by one however many ask, on two servers, and let nobody wait for it', async () => {
    const request = lab.request(provider, { scopes: ['read'], customParameters: { ahead: 'yes' } });
    const get = (flows = lab.first) => flows.machine(request, lab.caller, lab);
    const first = await get();
    const before = server.asked.length;
    // Its last minute.
    lab.clock.jump(560_000);
    const came: (() => void)[] = [];
    server.instead((_req, res) => {
      const token = { access_token: `ahead-${came.length}`, token_type: 'Bearer', expires_in: 600 };
      came.push(() => res.setHeader('content-type', 'application/json').end(JSON.stringify(token)));
    });
    try {
      const all = await Promise.all(
        Array.from({ length: 1000 }, (_, at) => get(at % 2 === 0 ? lab.first : lab.second)),
      );
      expect(new Set(all)).toEqual(new Set([first]));
      await expect.poll(() => came).toHaveLength(1);
      // Those who come while the provider takes its time are no further question, either.
      expect(await Promise.all([get(), get(lab.second)])).toEqual([first, first]);
      came[0]?.();
      for (const flows of [lab.first, lab.second]) await expect.poll(() => get(flows)).toBe('ahead-0');
      expect(came).toHaveLength(1);
    } finally {
      server.instead(undefined);
    }
    expect(server.asked.length).toBe(before);
  });

  it('tell tokens of agents apart by provider, scopes, audiences and resources, and by nothing else', async () => {
    const settings = { oauthDiscovery: { discoveryUrl: server.discoveryUrl } };
    const get = async (request: ReturnType<FlowLab['request']>, flows = lab.first) =>
      flows.machine(request, lab.caller, lab);
    const base = { scopes: ['read', 'write'], audiences: ['urn:stock'], resources: ['urn:orders'] };
    const token = await get(lab.request(provider, base));
    const before = server.asked.length;
    const same = [
      lab.request(provider, { ...base, user: user('ada'), customParameters: {} }),
      lab.request(provider, { ...base, user: user('bob'), customParameters: {} }),
    ];
    for (const request of same)
      for (const flows of [lab.first, lab.second]) expect(await get(request, flows)).toBe(token);
    expect(server.asked.length).toBe(before);
    const others = [
      lab.request(await lab.provider(settings), base),
      lab.request(provider, { ...base, scopes: ['read'] }),
      lab.request(provider, { ...base, audiences: ['urn:shop'] }),
      lab.request(provider, { ...base, audiences: [] }),
      lab.request(provider, { ...base, resources: [] }),
      // What is moved from one list to another is something else.
      lab.request(provider, { ...base, audiences: ['urn:orders'], resources: ['urn:stock'] }),
    ];
    server.instead((_req, res) => {
      const answer = { access_token: randomUUID(), token_type: 'Bearer', expires_in: 600 };
      res.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
    });
    try {
      const tokens = new Set([token]);
      for (const request of others) {
        const other = await get(request);
        expect(await get(request, lab.second)).toBe(other);
        tokens.add(other);
      }
      expect(tokens.size).toBe(others.length + 1);
    } finally {
      server.instead(undefined);
    }
  });

  it('give an agent a thousand tokens of its own at once, and those that it has', async () => {
    await lab.workload('greedy');
    const get = (what: string, workload = 'greedy') =>
      lab.first.machine(
        lab.request(provider, { workload, scopes: ['read'], customParameters: { what } }),
        lab.caller,
        lab,
      );
    const first = await get('first');
    await database().query(
      `INSERT INTO identity_tokens (key, account_id, provider_arn, provider_id, workload, user_names, scopes, sealed, expires_at, granted_at, updated_at)
       SELECT n::text, $1, '', '', 'greedy', '[]', '[]', '', $2, now(), now() FROM generate_series(2, 1000) n`,
      [ACCOUNT, new Date(lab.clock.now() + 3_600_000)],
    );
    await expect(get('another')).rejects.toMatchObject({
      ...{ code: 'ThrottlingException', message: expect.stringContaining('1000') },
    });
    expect(await get('first')).toBe(first);
    lab.clock.jump(700_000);
    expect(await get('first')).not.toBe(first);
    await get('another', 'assistant');
    lab.clock.jump(3_600_000);
    await get('another');
  });

  it('give a cached token while its provider is down, ask a bounded number of times, and say so once it is over', async () => {
    const request = lab.request(provider, { scopes: ['read'], customParameters: { down: 'yes' } });
    const get = () => lab.first.machine(request, lab.caller, lab);
    const token = await get();
    let asked = 0;
    server.instead((_req, res) => {
      asked += 1;
      res.writeHead(503).end();
    });
    try {
      lab.clock.jump(560_000);
      expect(await get()).toBe(token);
      await expect.poll(() => asked, { timeout: 10_000 }).toBe(3);
      lab.clock.jump(60_000);
      await expect(get()).rejects.toMatchObject({ kind: 'unreachable', message: expect.stringContaining('503') });
      // Three times more, unless it waited for those who asked ahead.
      expect([3, 6]).toContain(asked);
    } finally {
      server.instead(undefined);
    }
    expect(await get()).not.toBe(token);
  });

  it.each<[string, string, Parameters<ConsentProvider['instead']>[0]]>([
    ['garbage', 'nonsense', (_req, res) => res.end('\x00\x01garbage')],
    ['HTML', 'nonsense', (_req, res) => res.setHeader('content-type', 'text/html').end('<h1>hello</h1>')],
    ['10 MB', 'nonsense', (_req, res) => res.end(`{"access_token":"${'x'.repeat(10_000_000)}"}`)],
    ['no token', 'nonsense', (_req, res) => res.end('{"token_type":"Bearer"}')],
    ['an empty token', 'nonsense', (_req, res) => res.end('{"access_token":"","token_type":"Bearer"}')],
    [
      'a token of two lines',
      'nonsense',
      (_req, res) => res.end('{"access_token":"a\\r\\nb: c","token_type":"Bearer"}'),
    ],
    ['a token for others', 'nonsense', (_req, res) => res.end('{"access_token":"a","token_type":"mac"}')],
    [
      'a negative life',
      'nonsense',
      (_req, res) => res.end('{"access_token":"a","token_type":"Bearer","expires_in":-1}'),
    ],
    ['an error with status 200', 'refused', (_req, res) => res.end('{"error":"invalid_client"}')],
    ['a redirect', 'nonsense', (_req, res) => res.writeHead(307, { location: 'http://169.254.169.254/' }).end('{}')],
    ['a closed connection', 'unreachable', (req) => req.destroy()],
  ])('refuse %s of a provider as %s, and keep nothing', async (what, kind, listener) => {
    const request = lab.request(provider, { scopes: ['read'], customParameters: { what } });
    server.instead(listener);
    try {
      await expect(lab.first.machine(request, lab.caller, lab)).rejects.toMatchObject({ kind });
    } finally {
      server.instead(undefined);
    }
    // The control: the same request of the same provider in its senses.
    expect(await lab.first.machine(request, lab.caller, lab)).toMatch(/^[\w-]+$/);
  });

  it.each([
    ['as it is', { error: 'invalid_client', error_description: 'a-client-secret-4711 is wrong for the client' }],
    ['in a header', { error: 'invalid_client', error_description: `got Basic ${btoa('client:a-client-secret-4711')}` }],
    ['as the error', { error: 'wrong a-client-secret-4711' }],
    ['in a member of its own', { error: 'invalid_client', got: 'a-client-secret-4711' }],
  ])('tell no secret where the provider repeats it: %s', async (_name, answer) => {
    const request = lab.request(provider, { scopes: ['read'], customParameters: { repeats: 'it' } });
    server.instead((_req, res) => res.writeHead(400).end(JSON.stringify(answer)));
    try {
      const refused: unknown = await lab.first.machine(request, lab.caller, lab).catch((error: unknown) => error);
      // As a log shows it, with all that it was caused by.
      const shown = inspect(refused, { depth: 10 });
      expect(shown).toMatch(/gave no token: (invalid_client|an error)/);
      for (const secret of ['4711', btoa('client:a-client-secret-4711')]) expect(shown).not.toContain(secret);
    } finally {
      server.instead(undefined);
    }
  });

  it('renew a user’s token silently, and keep each refresh token that comes', async () => {
    const tokens = [await consented('ada')];
    const request = lab.request(provider, { user: user('ada') });
    for (const flows of [lab.second, lab.first, lab.second]) {
      lab.clock.jump(600_000);
      const { accessToken = '' } = await lab.ask(flows, request);
      expect(await server.whoIs(accessToken)).toBe('ada');
      tokens.push(accessToken);
    }
    expect(new Set(tokens).size).toBe(4);
    // The provider takes back a grant whose refresh token comes twice: none has.
    const sent = server.asked.flatMap((one) => one.get('refresh_token') ?? []);
    expect(new Set(sent).size).toBe(sent.length);
  });

  it('begin again after a revocation, with a status that says so', async () => {
    await consented('bob');
    const request = lab.request(provider, { user: user('bob') });
    lab.clock.jump(600_000);
    await lab.ask(lab.first, request);
    // The user takes it back at the provider.
    await server.revoke(server.asked.at(-1)?.get('refresh_token') ?? '');
    lab.clock.jump(600_000);
    const lost = await lab.ask(lab.first, request, { returnUrl: RETURN_URL });
    expect(lost).toMatchObject({
      ...{ sessionStatus: 'FAILED', authorizationUrl: expect.any(String), sessionUri: expect.any(String) },
    });
    const { sessionUri = '' } = lost;
    expect(await lab.ask(lab.first, request, { sessionUri })).toMatchObject({
      sessionUri,
      sessionStatus: 'IN_PROGRESS',
    });
    const back = await lab.back(lab.first, await lab.consent(lab.first, sessionUri));
    await complete(broughtBack(back), 'bob');
    expect(await server.whoIs((await lab.ask(lab.first, request, { sessionUri })).accessToken ?? '')).toBe('bob');
  });

  it('ask again when they are told to, and give the old token to nobody meanwhile who waits for the new', async () => {
    const old = await consented('forced');
    const request = lab.request(provider, { user: user('forced') });
    const { sessionUri = '' } = await lab.ask(lab.first, request, { force: true, returnUrl: RETURN_URL });
    expect(await lab.ask(lab.first, request, { sessionUri })).toMatchObject({ sessionStatus: 'IN_PROGRESS' });
    expect((await lab.ask(lab.first, request)).accessToken).toBe(old);
    await complete(broughtBack(await lab.back(lab.first, await lab.consent(lab.first, sessionUri))), 'forced');
    const renewed = (await lab.ask(lab.first, request, { sessionUri })).accessToken;
    expect(renewed).not.toBe(old);
  });

  it('take a state once, from the browser that went, for the provider that it was made for', async () => {
    const request = lab.request(provider, { user: user('cy') });
    const { sessionUri = '' } = await lab.ask(lab.first, request, { returnUrl: RETURN_URL });
    const url = await lab.consent(lab.first, sessionUri);
    const refused = { kind: 'refused' };
    // Login CSRF: the link of one in the browser of another.
    expect(await lab.back(lab.first, url, 'browser-2')).toMatchObject(refused);
    expect(await lab.back(lab.first, url, '')).toMatchObject(refused);
    const foreign = new URL(url);
    foreign.searchParams.set('state', 'x'.repeat(43));
    expect(await lab.back(lab.first, foreign)).toMatchObject(refused);
    const elsewhere = new URL(url.href.replace(provider.data.id, randomUUID()));
    expect(await lab.back(lab.first, elsewhere)).toMatchObject(refused);
    // The control, on the other server; and the same once more.
    const back = await lab.back(lab.second, url);
    expect(back).toMatchObject({ kind: 'application', url: expect.stringContaining(RETURN_URL) });
    expect(await lab.back(lab.first, url)).toMatchObject(refused);
    await complete(broughtBack(back), 'cy', lab.second);
    expect(await server.whoIs((await lab.ask(lab.first, request)).accessToken ?? '')).toBe('cy');
  });

  it('refuse the answer of another issuer, and begin again', async () => {
    const request = lab.request(provider, { user: user('mix') });
    const { sessionUri = '' } = await lab.ask(lab.first, request, { returnUrl: RETURN_URL });
    const url = await lab.consent(lab.first, sessionUri);
    expect(url.searchParams.get('iss')).toBe(server.issuer);
    url.searchParams.set('iss', 'https://mallory.example');
    expect(await lab.back(lab.first, url)).toMatchObject({ kind: 'failed' });
    expect(await lab.ask(lab.first, request, { sessionUri })).toEqual({ sessionUri, sessionStatus: 'FAILED' });
    const without = await lab.ask(lab.first, request, { returnUrl: RETURN_URL });
    const again = await lab.consent(lab.first, without.sessionUri ?? '');
    again.searchParams.delete('iss');
    expect(await lab.back(lab.first, again)).toMatchObject({ kind: 'failed' });
  });

  it('send people back to the very addresses of the workload alone', async () => {
    const request = lab.request(provider, { user: user('open') });
    for (const returnUrl of [
      `${RETURN_URL}/`,
      `${RETURN_URL}?x=1`,
      'https://app.example.evil/back',
      RETURN_URL.toUpperCase(),
      'javascript:alert(1)',
    ])
      await expect(lab.ask(lab.first, request, { returnUrl })).rejects.toMatchObject({ code: 'ValidationException' });
    expect(await lab.ask(lab.first, request, { returnUrl: RETURN_URL })).toMatchObject({
      sessionStatus: 'IN_PROGRESS',
    });
  });

  it('end at an application wherever the agent has one, and at the platform where it has none', async () => {
    const own = { user: user('alone'), workload: 'alone' };
    await lab.identities.create({ name: 'alone' }, ACCOUNT);
    const allow = (...allowedResourceOauth2ReturnUrls: string[]) =>
      lab.identities.update({ name: 'alone', allowedResourceOauth2ReturnUrls }, ACCOUNT);
    const begun = async () => (await lab.ask(lab.first, lab.request(provider, own))).sessionUri ?? '';
    const done = await lab.back(lab.first, await lab.consent(lab.first, await begun()));
    expect(done).toMatchObject({ kind: 'done' });
    // An agent that leaves it out does without nobody’s confirmation.
    const left = lab.ask(lab.first, lab.request(provider, { user: user('alone') }));
    await expect(left).rejects.toMatchObject({
      ...{ code: 'ValidationException', message: expect.stringContaining('resourceOauth2ReturnUrl is required') },
    });
    // Nor does one that had begun before there was an application.
    const early = { ...own, user: user('early') };
    const { sessionUri = '' } = await lab.ask(lab.first, lab.request(provider, early));
    const url = await lab.consent(lab.first, sessionUri);
    await allow(RETURN_URL);
    expect(await lab.back(lab.first, url)).toMatchObject({ kind: 'refused' });
    expect(
      (await lab.ask(lab.first, lab.request(provider, early), { returnUrl: RETURN_URL })).accessToken,
    ).toBeUndefined();
    // What was granted before stands, and is given without an address.
    expect((await lab.ask(lab.first, lab.request(provider, own))).accessToken).toBeDefined();
  });

  it('begin so many for one user of an agent within ten minutes, and are forgotten an hour after', async () => {
    const begin = (id: string, at: number, flows = lab.first) =>
      lab.ask(flows, lab.request(provider, { user: user(id), scopes: [`scope-${at}`] }), { returnUrl: RETURN_URL });
    const tried = await Promise.allSettled(
      Array.from({ length: 60 }, (_, at) => begin('many', at, at % 2 === 0 ? lab.first : lab.second)),
    );
    const refused = tried.filter((one) => one.status === 'rejected').map(({ reason }) => reason);
    expect(refused).toHaveLength(10);
    for (const one of refused)
      expect(one).toMatchObject({ code: 'ThrottlingException', message: expect.stringContaining('50') });
    // One that denies them gets no more by it, and another user has his own.
    const first = tried.find((one) => one.status === 'fulfilled');
    const session = await lab.first.federation.open(first?.value.sessionUri ?? '');
    if (session) await lab.first.federation.deny(session);
    await expect(begin('many', 61)).rejects.toMatchObject({ code: 'ThrottlingException' });
    await begin('another', 61);
    lab.clock.jump(600_001);
    await begin('many', 61);
    const rows = async () =>
      (await database().query(`SELECT id FROM identity_authorizations WHERE user_names = '["many"]'`)).length;
    const rule = flowRetention(database()).find(({ name }) => name === 'consents');
    const round = () => rule?.forget(lab.clock.now() - rule.keepMs, 1000);
    await round();
    expect(await rows()).toBe(51);
    lab.clock.jump(4_200_002);
    await round();
    expect(await rows()).toBe(0);
  });

  it('say at the provider what the platform and its vendor say, whatever the agent adds', async () => {
    const { discoveryUrl } = server;
    const atlassian = await lab.provider({ vendor: 'AtlassianOauth2', oauthDiscovery: { discoveryUrl } });
    const request = lab.request(atlassian, {
      user: user('adds'),
      // As a row that was written before they were refused at the door.
      customParameters: {
        login_hint: 'adds',
        audience: 'urn:mine',
        prompt: 'none',
        state: 'mine',
        redirect_uri: 'https://evil.example/',
      },
    });
    const { sessionUri = '' } = await lab.ask(lab.first, request, { returnUrl: RETURN_URL });
    const session = await lab.first.federation.open(sessionUri);
    if (!session) throw new Error('there is no session');
    expect(await lab.first.federation.parametersOf(session)).toMatchObject({ login_hint: 'adds', prompt: 'none' });
    const url = new URL(await lab.first.federation.allow(session, 'browser-1'));
    for (const name of url.searchParams.keys()) expect(url.searchParams.getAll(name), name).toHaveLength(1);
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      ...{ audience: 'api.atlassian.com', prompt: 'consent', login_hint: 'adds' },
      redirect_uri: `https://agents.example/identities/oauth2/callback/${atlassian.data.id}`,
      state: expect.stringMatching(/^[\w-]{43}$/),
    });
  });

  it('keep what the address of the provider has already', async () => {
    const { issuer } = server;
    const metadata = { issuer, authorizationEndpoint: `${issuer}/auth?tenant=acme`, tokenEndpoint: `${issuer}/token` };
    const fixed = await lab.provider({ oauthDiscovery: { authorizationServerMetadata: metadata } });
    const customParameters = { tenant: 'evil', login_hint: 'fixed' };
    const request = lab.request(fixed, { user: user('fixed'), customParameters });
    const { sessionUri = '' } = await lab.ask(lab.first, request, { returnUrl: RETURN_URL });
    const session = await lab.first.federation.open(sessionUri);
    if (!session) throw new Error('there is no session');
    const url = new URL(await lab.first.federation.allow(session, 'browser-1'));
    expect(url.searchParams.getAll('tenant')).toEqual(['acme']);
    expect(url.searchParams.getAll('login_hint')).toEqual(['fixed']);
  });

  it('show the session of another user or agent to nobody, nor complete it', async () => {
    const { sessionUri = '' } = await lab.ask(lab.first, lab.request(provider, { user: user('ada-2') }), {
      returnUrl: RETURN_URL,
    });
    const missing = { code: 'ResourceNotFoundException' };
    for (const of of [{ user: user('eve') }, { user: user('ada-2'), workload: 'other' }])
      await expect(lab.ask(lab.first, lab.request(provider, of), { sessionUri })).rejects.toMatchObject(missing);
    const back = broughtBack(await lab.back(lab.first, await lab.consent(lab.first, sessionUri)));
    // Who sent the link knows its session, and not what the browser of another brings back: he binds nothing of hers to himself.
    await expect(complete(sessionUri, 'ada-2')).rejects.toMatchObject({
      code: 'ValidationException',
      message: expect.stringContaining('own name'),
    });
    await expect(complete(back, 'eve')).rejects.toMatchObject({ code: 'AccessDeniedException' });
    const elsewhere = lab.first.federation.complete(
      back,
      { userId: 'ada-2' },
      { ...lab.caller, accountId: '444455556666' },
    );
    await expect(elsewhere).rejects.toMatchObject(missing);
    await complete(back, 'ada-2');
    // Asked for once more it has no second effect.
    await complete(back, 'ada-2');
  });

  it('end with ten minutes', async () => {
    const request = lab.request(provider, { user: user('late') });
    const { sessionUri = '' } = await lab.ask(lab.first, request, { returnUrl: RETURN_URL });
    const url = await lab.consent(lab.first, sessionUri);
    lab.clock.jump(600_001);
    expect(await lab.first.federation.open(sessionUri)).toBeUndefined();
    expect(await lab.back(lab.first, url)).toMatchObject({ kind: 'refused' });
    expect(await lab.ask(lab.first, request, { sessionUri })).toEqual({ sessionUri, sessionStatus: 'FAILED' });
  });

  it('go on after the end of a server at every step, or say that they must begin again', async () => {
    const request = lab.request(provider, { user: user('kill') });
    // Each step by the other server: nothing of it was in memory.
    const { sessionUri = '' } = await lab.ask(lab.first, request, { returnUrl: RETURN_URL });
    const url = await lab.consent(lab.second, sessionUri);
    const back = broughtBack(await lab.back(lab.first, url));
    // It ends with the code on its way: nobody knows whether the provider had it.
    await database().execute(`UPDATE identity_authorizations SET status = 'EXCHANGING' WHERE status = 'RETURNED'`);
    await expect(complete(back, 'kill', lab.second)).rejects.toMatchObject({
      message: expect.stringContaining('just being fetched'),
    });
    lab.clock.jump(61_000);
    // Who polls is told so, also where nobody completes it; and it begins again.
    expect(await lab.ask(lab.second, request, { sessionUri })).toEqual({ sessionUri, sessionStatus: 'FAILED' });
    const again = await lab.ask(lab.second, request, { returnUrl: RETURN_URL });
    expect(again.sessionUri).not.toBe(sessionUri);
    await expect(complete(back, 'kill', lab.second)).rejects.toMatchObject(BEGIN_AGAIN);
    const anew = await lab.back(lab.second, await lab.consent(lab.second, again.sessionUri ?? ''));
    await complete(broughtBack(anew), 'kill', lab.second);
    expect(await server.whoIs((await lab.ask(lab.first, request)).accessToken ?? '')).toBe('kill');
    // A server that ended while it renewed a token keeps the others for a minute.
    lab.clock.jump(600_000);
    const [{ key } = { key: '' }] = await database().query<{ key: string }>(
      `SELECT key FROM identity_tokens WHERE account_id = $1 AND user_names = '["kill"]'`,
      [ACCOUNT],
    );
    await database().execute(
      `INSERT INTO identity_refreshes (key, holder, server, account_id, provider_id, workload, until) VALUES ($1, 'dead', 'dead', '', '', '', $2)`,
      [key, new Date(lab.clock.now() + 60_000)],
    );
    const waiting = lab.ask(lab.second, request);
    lab.clock.jump(60_001);
    expect(await server.whoIs((await waiting).accessToken ?? '')).toBe('kill');
  });

  it('write a renewed token although the database is away when the provider answers', async () => {
    await consented('away');
    const request = lab.request(provider, { user: user('away') });
    lab.clock.jump(600_000);
    lab.failTransactions(2);
    const { accessToken = '' } = await lab.ask(lab.first, request);
    expect(lab.toFail()).toBe(0);
    expect(await server.whoIs(accessToken)).toBe('away');
    // The refresh token that came with it was written, too.
    lab.clock.jump(600_000);
    expect(await server.whoIs((await lab.ask(lab.second, request)).accessToken ?? '')).toBe('away');
  });

  it('forget tokens and consents of a provider that is gone', async () => {
    const token = await consented('gone');
    const request = lab.request(provider, { user: user('gone') });
    expect((await lab.ask(lab.second, request)).accessToken).toBe(token);
    await database().transaction((tx) => lab.first.forget({ providerId: provider.data.id }, tx));
    const anew = await lab.ask(lab.second, request, { returnUrl: RETURN_URL });
    expect(anew).toMatchObject({ sessionStatus: 'IN_PROGRESS' });
    expect(anew.accessToken).toBeUndefined();
  });
});
