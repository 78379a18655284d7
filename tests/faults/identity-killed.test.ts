import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import {
  CompleteResourceTokenAuthCommand,
  GetResourceOauth2TokenCommand,
  type GetResourceOauth2TokenCommandInput,
  type GetResourceOauth2TokenCommandOutput,
  GetWorkloadAccessTokenForUserIdCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import { CreateWorkloadIdentityCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { openDatabase } from '../../packages/platform/src/kernel/storage/index.ts';
import { Browser } from '../../packages/platform/src/services/identity/flows/testing/browser.ts';
import type { ConsentProvider } from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectConsentProvider } from '../support/consent-platform.ts';
import { keptPort } from '../support/kept-port.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

/** A server that dies is back on its data in seconds; what it held in the database for others lapses after a minute. */
const PATIENT = { timeout: 180_000 };
const BACK = 'https://app.example/back';
let dataDir: string;
let port: number;
let platform: TestPlatform;
let clients: Clients;
let provider: ConsentProvider;
/** It says that its tokens are over as soon as they are there, so each use renews one; they count for long enough to be looked at. */
let rotating: ConsentProvider;

async function start(): Promise<void> {
  // Links and callbacks name it.
  const args = ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'];
  platform = await startTestPlatform({ dataDir, port, args });
  clients = clientsOf(platform);
}

/** What the ended server wrote down of consents becomes older, as if it had been away for so long. */
async function passTime(seconds: number): Promise<void> {
  const database = await openDatabase({ dataDir, clock: systemClock, log: pino({ enabled: false }) });
  try {
    await database.execute('UPDATE identity_authorizations SET updated_at = updated_at - make_interval(secs => $1)', [
      seconds,
    ]);
  } finally {
    await database.close();
  }
}

/** Ends the server as the machine's end would, and starts it again. */
async function kill(): Promise<void> {
  clients.close();
  await platform.end('SIGKILL');
  await start();
}

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'identity-killed-'));
  port = await keptPort();
  await start();
  provider = await connectConsentProvider(clients, 'calendar');
  rotating = await connectConsentProvider(clients, 'rotating', undefined, { saysSeconds: 2 });
  const application = { name: 'assistant', allowedResourceOauth2ReturnUrls: [BACK] };
  await clients.control.send(new CreateWorkloadIdentityCommand(application));
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  for (const one of [provider, rotating]) await one?.close();
  await rm(dataDir, { recursive: true, force: true });
});

/** What the agent asks, with a workload access token from the server that is there now. */
async function ask(
  userId: string,
  more: Partial<GetResourceOauth2TokenCommandInput> = {},
): Promise<GetResourceOauth2TokenCommandOutput> {
  const { workloadAccessToken } = await clients.data.send(
    new GetWorkloadAccessTokenForUserIdCommand({ workloadName: 'assistant', userId }),
  );
  return clients.data.send(
    new GetResourceOauth2TokenCommand({
      ...{ workloadIdentityToken: workloadAccessToken, resourceCredentialProviderName: 'calendar' },
      ...{ scopes: ['openid', 'offline_access', 'read'], oauth2Flow: 'USER_FEDERATION', resourceOauth2ReturnUrl: BACK },
      ...{ customParameters: { login_hint: userId, prompt: 'login' } },
      ...more,
    }),
  );
}

const complete = (sessionUri: string, userId: string) =>
  clients.data.send(new CompleteResourceTokenAuthCommand({ sessionUri, userIdentifier: { userId } }));

/** A person in a browser of his own, up to where the provider sends it back; and on to the application. */
async function allowed(authorizationUrl = '', browser = new Browser()): Promise<string> {
  const { location } = await browser.decide(authorizationUrl);
  return (await browser.follow(location ?? '', ({ pathname }) => pathname.includes('/oauth2/callback/'))).url;
}
async function toApplication(url: string, browser: Browser): Promise<string> {
  const back = await browser.follow(url, ({ host }) => host === 'app.example');
  return new URL(back.url).searchParams.get('session_id') ?? '';
}

/** A user who has consented. */
async function consented(userId: string, more: Partial<GetResourceOauth2TokenCommandInput> = {}): Promise<void> {
  const browser = new Browser();
  const { authorizationUrl } = await ask(userId, more);
  await complete(await toApplication(await allowed(authorizationUrl, browser), browser), userId);
}

/** Holds what comes to a token endpoint until the server that asked is dead: the provider does what comes first, and has nothing of the rest. */
function hold(of: ConsentProvider) {
  let came = 0;
  const pass = async (request: IncomingMessage): Promise<void> => {
    const body = await text(request);
    const { authorization = '', 'content-type': type = '' } = request.headers;
    if (came === 0) {
      of.instead(undefined);
      // The provider does its work; nobody hears of it.
      const headers = { authorization, 'content-type': type };
      const done = await fetch(`${of.issuer}/token`, { method: 'POST', headers, body });
      expect(done.status).toBe(200);
      of.instead(listener);
    }
    came += 1;
  };
  const listener: Parameters<ConsentProvider['instead']>[0] = (request) => void pass(request);
  of.instead(listener);
  return {
    /** Until so many are there. */
    until: (count: number) => expect.poll(() => came, { timeout: 90_000 }).toBe(count),
    over: () => of.instead(undefined),
  };
}

describe('a consent', () => {
  it('goes on after a kill -9 at each of its steps', PATIENT, async () => {
    const begun = await ask('ada');
    await kill();
    const again = await ask('ada', { sessionUri: begun.sessionUri });
    expect(again).toMatchObject({ authorizationUrl: begun.authorizationUrl, sessionStatus: 'IN_PROGRESS' });
    const browser = new Browser();
    // Asked on the page, allowed, and with the provider.
    await browser.send(begun.authorizationUrl ?? '');
    await kill();
    const { location } = await browser.decide(begun.authorizationUrl ?? '');
    await kill();
    const { url } = await browser.follow(location ?? '', ({ pathname }) => pathname.includes('/oauth2/callback/'));
    await kill();
    const brought = await toApplication(url, browser);
    await kill();
    expect(await ask('ada', { sessionUri: begun.sessionUri })).toMatchObject({ sessionStatus: 'IN_PROGRESS' });
    await complete(brought, 'ada');
    await kill();
    const { accessToken = '' } = await ask('ada', { sessionUri: begun.sessionUri });
    expect(await provider.whoIs(accessToken)).toBe('ada');
    expect((await ask('ada')).accessToken).toBe(accessToken);
    // The provider was asked once for it.
    expect(provider.asked.filter((asked) => asked.get('grant_type') === 'authorization_code')).toHaveLength(1);
  });

  it('whose code was on its way says that it must begin again, and does', PATIENT, async () => {
    const users = ['bob', 'cy'];
    const [brought, sessions] = [new Map<string, string>(), new Map<string, string>()];
    for (const user of users) {
      const browser = new Browser();
      const { authorizationUrl, sessionUri = '' } = await ask(user);
      brought.set(user, await toApplication(await allowed(authorizationUrl, browser), browser));
      sessions.set(user, sessionUri);
    }
    // One code is redeemed and the other is not: from here nobody can tell.
    const held = hold(provider);
    const asking: Promise<unknown>[] = [];
    for (const user of users) {
      asking.push(complete(brought.get(user) ?? '', user).catch(() => 'cut off'));
      await held.until(asking.length);
    }
    await platform.end('SIGKILL');
    expect(await Promise.all(asking)).toEqual(['cut off', 'cut off']);
    held.over();
    clients.close();
    await passTime(120);
    await start();
    for (const user of users) {
      const sessionUri = sessions.get(user) ?? '';
      await expect
        .poll(() => ask(user, { sessionUri }), { timeout: 90_000, interval: 1000 })
        .toMatchObject({ sessionUri, sessionStatus: 'FAILED' });
      await expect(complete(brought.get(user) ?? '', user)).rejects.toMatchObject({
        name: 'ValidationException',
        message: expect.stringContaining('begin again'),
      });
      await consented(user);
      expect(await provider.whoIs((await ask(user)).accessToken ?? '')).toBe(user);
    }
  });
});

describe('a refresh', () => {
  const AT = { resourceCredentialProviderName: 'rotating' };

  it(
    'is done after a kill -9 before the provider had it; where the provider had it, the user is asked again',
    PATIENT,
    async () => {
      for (const user of ['dan', 'eve']) await consented(user, AT);
      const tokens = new Map<string, string | undefined>();
      for (const user of ['dan', 'eve']) tokens.set(user, (await ask(user, AT)).accessToken);
      const held = hold(rotating);
      // The provider has rotated eve's, and nobody has heard of it.
      const cut = ask('eve', AT).catch(() => undefined);
      await held.until(1);
      const early = ask('dan', AT).catch(() => undefined);
      await held.until(2);
      await platform.end('SIGKILL');
      expect(await Promise.all([cut, early])).toEqual([undefined, undefined]);
      held.over();
      clients.close();
      await start();
      const [dan, eve] = await Promise.all([ask('dan', AT), ask('eve', AT)]);
      expect(await rotating.whoIs(dan.accessToken ?? '')).toBe('dan');
      expect(dan.accessToken).not.toBe(tokens.get('dan'));
      expect(eve).toMatchObject({ sessionStatus: 'FAILED', authorizationUrl: expect.any(String) });
      // Not in silence: the operator reads of it, too.
      expect(platform.log()).toContain('renewal was cut off');
      await consented('eve', AT);
      expect(await rotating.whoIs((await ask('eve', AT)).accessToken ?? '')).toBe('eve');
    },
  );

  it('that a caller was told of is never lost, however soon the server dies', PATIENT, async () => {
    await consented('gus', AT);
    const sent = () => rotating.asked.flatMap((asked) => asked.get('refresh_token') ?? []);
    const before = sent().length;
    const tokens = new Set<string | undefined>();
    for (let round = 0; round < 2; round += 1) {
      tokens.add((await ask('gus', AT)).accessToken);
      await kill();
    }
    const last = (await ask('gus', AT)).accessToken ?? '';
    expect(await rotating.whoIs(last)).toBe('gus');
    expect(tokens.add(last)).not.toContain(undefined);
    // Each of them came of a refresh token of its own: the provider ends the grant where one comes twice.
    expect(tokens.size).toBe(3);
    expect(new Set(sent().slice(before)).size).toBe(3);
    expect(platform.log()).not.toContain('renewal was cut off');
  });

  it('is kept, or the user is asked again, whenever the server dies after the answer', PATIENT, async () => {
    await consented('fay', AT);
    // Each time a little later.
    for (let round = 0; round < 2; round += 1) {
      const answered = rotating.asked.length;
      const asking = ask('fay', AT).catch(() => undefined);
      await expect.poll(() => rotating.asked.length, { interval: 1, timeout: 90_000 }).toBeGreaterThan(answered);
      await kill();
      await asking;
      const after = await ask('fay', AT);
      if (after.accessToken === undefined) {
        expect(after.sessionStatus).toBe('FAILED');
        await consented('fay', AT);
      } else expect(await rotating.whoIs(after.accessToken)).toBe('fay');
    }
  });
});

describe('a provider that is down', () => {
  it('is asked a bounded number of times, named by the error, and its token is served until that is over', async () => {
    const machine = (scope: string) => ask('gil', { oauth2Flow: 'M2M', scopes: [scope], customParameters: {} });
    const { accessToken } = await machine('read');
    const at: number[] = [];
    provider.instead((_request, response) => {
      at.push(performance.now());
      response.writeHead(503).end();
    });
    try {
      expect((await machine('read')).accessToken).toBe(accessToken);
      expect(at).toEqual([]);
      await expect(machine('write')).rejects.toMatchObject({
        ...{ name: 'ServiceUnavailableException', $metadata: { httpStatusCode: 503 } },
        message: expect.stringContaining(`${new URL(provider.issuer).host} answers 503`),
      });
      expect(at).toHaveLength(3);
    } finally {
      provider.instead(undefined);
    }
    expect((await machine('write')).accessToken).toMatch(/^[\w-]+$/);
  });
});
