import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import {
  GetResourceOauth2TokenCommand,
  GetWorkloadAccessTokenForJWTCommand,
  GetWorkloadAccessTokenForUserIdCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateConsentPortalCommand,
  type CreateConsentPortalCommandOutput,
  CreateOauth2CredentialProviderCommand,
  CreateWorkloadIdentityCommand,
  DeleteConsentPortalCommand,
  GetConsentPortalCommand,
  GetOauth2CredentialProviderCommand,
  ListConsentPortalsCommand,
  ListTagsForResourceCommand,
  UpdateConsentPortalCommand,
  UpdateOauth2CredentialProviderCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useChromium } from '../../packages/handset/test/support/chromium.ts';
import { Browser, fieldsOf } from '../../packages/platform/src/services/identity/flows/testing/browser.ts';
import {
  type ConsentProvider,
  startConsentProvider,
} from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { newRole, newUser } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

/** Where pictures for the guide go; none are made when absent. */
const IMAGES = process.env.AGENTPLATFORM_TEST_IMAGES;
const PHONE = { width: 360, height: 740 };
const DESKTOP = { width: 1024, height: 720 };

const chromium = useChromium();
const redirectUris: string[] = [];
let platform: TestPlatform;
let clients: Clients;
let provider: ConsentProvider;
let portal: CreateConsentPortalCommandOutput;

/** Settings of a provider; those of a server that is not there yet, without one. */
const settingsOf = (name: string, server?: ConsentProvider) => ({
  name,
  credentialProviderVendor: 'CustomOauth2' as const,
  oauth2ProviderConfigInput: {
    customOauth2ProviderConfig: {
      oauthDiscovery: {
        discoveryUrl: server?.discoveryUrl ?? 'https://later.example/.well-known/openid-configuration',
      },
      clientId: server?.clientId ?? 'later',
      clientSecret: server?.clientSecret ?? 'later',
    },
  },
});

async function makeProvider(name: string): Promise<void> {
  const made = await clients.control.send(new CreateOauth2CredentialProviderCommand(settingsOf(name)));
  redirectUris.push(made.callbackUrl ?? '');
}

async function ask(userId: string, more: object = {}) {
  const { workloadAccessToken } = await clients.data.send(
    new GetWorkloadAccessTokenForUserIdCommand({ workloadName: 'travel-assistant', userId }),
  );
  return clients.data.send(
    new GetResourceOauth2TokenCommand({
      workloadIdentityToken: workloadAccessToken,
      resourceCredentialProviderName: 'orders',
      scopes: ['openid', 'offline_access', 'read'],
      oauth2Flow: 'USER_FEDERATION',
      customParameters: { login_hint: userId, prompt: 'login' },
      ...more,
    }),
  );
}

async function makePortal(): Promise<void> {
  const { accountId, region } = platform.ready;
  const role = await newRole(platform, 'portal', [
    {
      ...{ Effect: 'Allow', Action: 'bedrock-agentcore:GetResourceOauth2Token' },
      Resource: `arn:aws:bedrock-agentcore:${region}:${accountId}:token-vault/default/oauth2credentialprovider/orders`,
    },
  ]);
  await makeProvider('staff');
  const { credentialProviderArn = '' } = await clients.control.send(
    new GetOauth2CredentialProviderCommand({ name: 'staff' }),
  );
  portal = await clients.control.send(
    new CreateConsentPortalCommand({
      ...{ name: 'people', description: 'for the staff', executionRoleArn: role, tags: { team: 'red' } },
      idpConfig: { credentialProviderArn, scopes: ['openid'] },
      sources: [{ identifier: 'tools-a1b2c3d4e5', type: 'agentcore-gateway' }],
    }),
  );
  redirectUris.push(`${portal.portalUrl}/callback`);
}

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  await makeProvider('orders');
  await makePortal();
  // It reads once where it may send people back to.
  provider = await startConsentProvider({ redirectUris });
  for (const name of ['orders', 'staff'])
    await clients.control.send(new UpdateOauth2CredentialProviderCommand(settingsOf(name, provider)));
  await clients.control.send(new CreateWorkloadIdentityCommand({ name: 'travel-assistant' }));
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
});

/** A page of a browser of its own, and what that browser complained of. */
async function newPage(options: { viewport: typeof PHONE; colorScheme?: 'light' | 'dark' }) {
  const context = await chromium.browser().newContext(options);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => void complaints.push(message.text()));
  page.on('pageerror', (error) => void complaints.push(String(error)));
  return { page, complaints };
}

const picture = async (page: { screenshot(options: object): Promise<unknown> }, name: string): Promise<void> => {
  if (IMAGES) await page.screenshot({ fullPage: true, path: join(IMAGES, `${name}.png`) });
};

describe('the consent page in Chromium', () => {
  it.each([
    ['phone', PHONE, 'light'],
    ['phone-dark', PHONE, 'dark'],
    ['desktop', DESKTOP, 'light'],
  ] as const)('is readable: %s', async (name, viewport, colorScheme) => {
    const { authorizationUrl = '' } = await ask(`look-${name}`, {
      scopes: ['openid', 'email', 'offline_access', 'read', 'write'],
    });
    const { page, complaints } = await newPage({ viewport, colorScheme });
    await page.goto(authorizationUrl);
    // A text: these tests know no types of a browser.
    const seen: { wide: boolean; heights: number[]; letters: number; paper: string } = await page.evaluate(`({
      wide: document.documentElement.scrollWidth > window.innerWidth,
      heights: [...document.querySelectorAll('button')].map((one) => one.getBoundingClientRect().height),
      letters: Number.parseFloat(getComputedStyle(document.body).fontSize),
      paper: getComputedStyle(document.body).backgroundColor,
    })`);
    expect(seen).toMatchObject({
      ...{ wide: false, letters: 16 },
      paper: colorScheme === 'dark' ? 'rgb(20, 23, 27)' : 'rgb(244, 245, 247)',
    });
    // As large as a finger.
    for (const height of seen.heights) expect(height).toBeGreaterThanOrEqual(44);
    await picture(page, `consent-${name}`);
    // The style was let in by its hash.
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('leads to the provider and back, and the agent has its token', async () => {
    const { authorizationUrl = '', sessionUri = '' } = await ask('ada');
    const { page, complaints } = await newPage({ viewport: PHONE });
    await page.goto(authorizationUrl);
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.getByText('has access now').waitFor();
    expect(new URL(page.url()).pathname).toMatch(/^\/identities\/oauth2\/callback\//);
    expect(complaints).toEqual([]);
    const { accessToken = '' } = await ask('ada', { sessionUri });
    expect(await provider.whoIs(accessToken)).toBe('ada');
    await page.context().close();
  });

  it('takes a no for a no', async () => {
    const { authorizationUrl = '', sessionUri = '' } = await ask('bob');
    const { page } = await newPage({ viewport: PHONE });
    await page.goto(authorizationUrl);
    await page.getByRole('button', { name: 'Deny' }).click();
    await page.getByText('The agent gets no access').waitFor();
    expect(await ask('bob', { sessionUri })).toMatchObject({ sessionStatus: 'FAILED' });
    await page.context().close();
  });

  it('shows in no frame of another site', async () => {
    const { authorizationUrl = '' } = await ask('framed');
    const { page, complaints } = await newPage({ viewport: DESKTOP });
    await page.setContent(`<iframe src="${authorizationUrl.replaceAll('&', '&amp;')}"></iframe>`);
    await expect.poll(() => complaints.join()).toContain('frame-ancestors');
    expect(page.frames().map((frame) => frame.url())).not.toContain(authorizationUrl);
    await page.context().close();
  });
});

describe('the page of a person’s grants in Chromium', () => {
  const admin = (method: string, path: string, content?: object) =>
    signedFetch(platform, { method, path: `/_platform/identity/grants${path}`, ...(content && { content }) });
  const linkFor = async (userId: string): Promise<string> =>
    ((await (await admin('POST', '/link', { userId })).json()) as { url: string }).url;
  const listed = async (userId: string) =>
    (
      (await (
        await signedFetch(platform, { method: 'GET', path: '/_platform/identity/grants', query: { userId } })
      ).json()) as {
        grants: { id: string; workload: string; user: object; scopes: string[] }[];
      }
    ).grants;

  async function consented(userId: string): Promise<string> {
    const { authorizationUrl = '', sessionUri = '' } = await ask(userId);
    const browser = new Browser();
    const { location } = await browser.decide(authorizationUrl);
    await browser.follow(location ?? '');
    return (await ask(userId, { sessionUri })).accessToken ?? '';
  }

  it('shows what he granted, takes it back here and at the provider, and is for him alone', async () => {
    const tokens = { cy: await consented('cy'), dan: await consented('dan') };
    const { page, complaints } = await newPage({ viewport: PHONE });
    await page.goto(await linkFor('cy'));
    expect(await page.getByRole('button').count()).toBe(1);
    expect(await page.textContent('main')).toContain('travel-assistant uses orders');
    await picture(page, 'grants-phone');
    await page.getByRole('button', { name: 'Take back' }).click();
    await page.getByText('orders was told').waitFor();
    expect(await page.textContent('main')).toContain('There is nothing.');
    expect(complaints).toEqual([]);
    expect(await provider.whoIs(tokens.cy)).toBeUndefined();
    expect((await ask('cy')).accessToken).toBeUndefined();
    expect(await provider.whoIs(tokens.dan)).toBe('dan');
    await page.context().close();
  });

  it('counts only from its own browser, for its own grants, with a link of ours', async () => {
    await consented('gil');
    await consented('hal');
    const [mine, theirs] = [(await listed('gil'))[0], (await listed('hal'))[0]];
    const [browser, other] = [new Browser(), new Browser()];
    const url = await linkFor('gil');
    const fields = fieldsOf(await (await browser.send(url)).text());
    const otherFields = fieldsOf(await (await other.send(url)).text());
    const post = (from: Browser, form: Record<string, string>) =>
      from.send(url, { method: 'POST', body: new URLSearchParams(form) });
    const revoke = mine?.id ?? '';
    const { token: _, ...without } = fields;
    for (const form of [
      { ...without, revoke },
      { ...fields, token: 'x', revoke },
      { ...otherFields, revoke },
    ])
      expect((await post(browser, form)).status).toBe(403);
    expect((await post(other, { ...fields, revoke })).status).toBe(403);
    expect((await post(browser, { ...fields, link: `${fields.link?.slice(0, -2)}xx`, revoke })).status).toBe(404);
    const foreign = await post(browser, { ...fields, revoke: theirs?.id ?? '' });
    expect(await foreign.text()).toContain('nothing to take back');
    expect([await listed('gil'), await listed('hal')].map(({ length }) => length)).toEqual([1, 1]);
    // The control.
    expect(await (await post(browser, { ...fields, revoke })).text()).toContain('gets no access');
    expect(await listed('gil')).toEqual([]);
    expect((await browser.send(url.replace(/link=.*/, 'link=made-up'))).status).toBe(404);
  });

  it('is there for administrators as an API, by rights that are named', async () => {
    await consented('ivy');
    const [grant] = await listed('ivy');
    expect(grant).toMatchObject({ workload: 'travel-assistant', user: { userId: 'ivy' } });
    const credentials = await newUser(platform, 'clerk', [
      { Effect: 'Allow', Action: 'agentplatform:ListGrants', Resource: '*' },
      {
        Effect: 'Allow',
        Action: 'agentplatform:RevokeGrant',
        Resource: 'arn:aws:bedrock-agentcore:*:*:workload-identity-directory/default/workload-identity/other',
      },
    ]);
    const path = '/_platform/identity/grants';
    const call = (method: string, at = path, content?: object) =>
      signedFetch(platform, { method, path: at, credentials, ...(content && { content }) });
    expect((await call('GET')).status).toBe(200);
    expect((await call('DELETE', `${path}/${grant?.id}`)).status).toBe(403);
    expect((await call('POST', `${path}/link`, { userId: 'ivy' })).status).toBe(403);
    expect(await listed('ivy')).toHaveLength(1);
    expect((await admin('POST', '/link', { issuer: 'https://x.example' })).status).toBe(400);
    const revoked = await admin('DELETE', `/${grant?.id}`);
    expect(await revoked.json()).toMatchObject({ grant: { id: grant?.id }, atProvider: 'revoked' });
    expect((await admin('DELETE', `/${grant?.id}`)).status).toBe(404);
  });
});

describe('a consent portal', () => {
  const url = (): string => portal.portalUrl ?? '';

  /** A user of the portal's own provider, who has consented to an agent. */
  async function consented(subject: string): Promise<string> {
    const userToken = await provider.userToken(subject);
    const command = new GetWorkloadAccessTokenForJWTCommand({ workloadName: 'travel-assistant', userToken });
    const { workloadAccessToken } = await clients.data.send(command);
    const token = (more: object = {}) =>
      ask(subject, {
        workloadIdentityToken: workloadAccessToken,
        customParameters: { login_hint: subject, prompt: 'login' },
        ...more,
      });
    const { authorizationUrl = '', sessionUri = '' } = await token();
    const browser = new Browser();
    const { location } = await browser.decide(authorizationUrl);
    await browser.follow(location ?? '');
    return (await token({ sessionUri })).accessToken ?? '';
  }

  /** A browser that has begun to sign in, and where the provider sends it back to. */
  async function begun(browser: Browser): Promise<URL> {
    const { url: back } = await browser.follow(`${url()}/sign-in`, ({ pathname }) => pathname.endsWith('/callback'));
    return new URL(back);
  }

  it('is made, shown, changed, listed and tagged by the AWS SDK', async () => {
    const { consentPortalId = '', consentPortalArn = '' } = portal;
    expect(portal).toMatchObject({
      ...{ name: 'people', status: 'ACTIVE', description: 'for the staff' },
      consentPortalId: expect.stringMatching(/^people-[A-Za-z0-9]{10}$/),
      consentPortalArn: expect.stringMatching(/:consent-portal\/people-[A-Za-z0-9]{10}$/),
      portalUrl: `${platform.ready.endpoint}/identities/portals/${consentPortalId}`,
    });
    const send = clients.control.send.bind(clients.control);
    const changed = await send(
      new UpdateConsentPortalCommand({ consentPortalIdentifier: consentPortalId, description: 'for all' }),
    );
    const found = await send(new GetConsentPortalCommand({ consentPortalIdentifier: consentPortalId }));
    expect([changed, found].map(({ description }) => description)).toEqual(['for all', 'for all']);
    expect(found.idpConfig).toEqual(portal.idpConfig);
    const { consentPortals } = await send(new ListConsentPortalsCommand({}));
    expect(consentPortals?.map(({ name }) => name)).toEqual(['people']);
    expect((await send(new ListTagsForResourceCommand({ resourceArn: consentPortalArn }))).tags).toEqual({
      team: 'red',
    });
    const { executionRoleArn, idpConfig, sources } = found;
    const again = { executionRoleArn, idpConfig, sources };
    await expect(send(new CreateConsentPortalCommand({ ...again, name: 'people' }))).rejects.toMatchObject({
      name: 'ConflictException',
    });
    const nobody = { ...again, name: 'b', executionRoleArn: executionRoleArn?.replace(/[^/]+$/, 'nobody') };
    await expect(send(new CreateConsentPortalCommand(nobody))).rejects.toMatchObject({ name: 'ValidationException' });
  });

  it('is walked in Chromium: sign in, see what agents use, take it back, sign out', async () => {
    provider.loginAs('ada');
    const [accessToken, others] = [await consented('ada'), await consented('zoe')];
    const { page, complaints } = await newPage({ viewport: PHONE });
    await page.goto(url());
    await page.getByRole('link', { name: 'Sign in with staff' }).click();
    await page.getByRole('heading', { name: 'Connections' }).waitFor();
    expect(page.url()).toBe(url());
    const text = await page.textContent('main');
    expect(text).toContain('signed in as ada');
    expect(text).toContain('travel-assistant uses orders');
    // The role has no right to the provider `staff`.
    expect(await page.getByRole('heading', { level: 2 }).allTextContents()).toEqual(['orders']);
    await picture(page, 'portal-phone');
    await page.getByRole('button', { name: 'Take back' }).click();
    await page.getByText('orders was told').waitFor();
    expect(await page.textContent('main')).toContain('Not connected');
    expect([await provider.whoIs(accessToken), await provider.whoIs(others)]).toEqual([undefined, 'zoe']);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('link', { name: 'Sign in with staff' }).waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('takes the answer of the browser that began alone, once, with its own state (login CSRF)', async () => {
    const [mallory, victim] = [new Browser(), new Browser()];
    const theirs = await begun(mallory);
    // The victim follows mallory's answer: without an own try, and with one.
    expect((await victim.send(theirs.href)).status).toBe(403);
    const mine = await begun(victim);
    expect(mine.searchParams.get('state')).not.toBe(theirs.searchParams.get('state'));
    expect((await victim.send(theirs.href)).status).toBe(403);
    expect(await (await victim.send(url())).text()).toContain('Sign in');
    // Its own state with another's code: the verifier does not fit.
    const fresh = await begun(victim);
    fresh.searchParams.set('code', theirs.searchParams.get('code') ?? '');
    expect((await victim.send(fresh.href)).status).toBe(502);
    // The control, and once more.
    const last = await begun(victim);
    expect((await victim.send(last.href)).status).toBe(303);
    expect(await (await victim.send(url())).text()).toContain('You are signed in');
    expect((await victim.send(last.href)).status).toBe(403);
  });

  it('asks the provider nothing for an answer to no question of its own', async () => {
    const { consentPortalId, consentPortalArn, portalUrl } = portal;
    const forger = new Browser();
    // Whoever makes up a cookie knows the state that comes of it.
    const cookie = 'm'.repeat(43);
    forger.plant(url(), `agentplatform-sign-in-${consentPortalId}`, cookie);
    const state = createHmac('sha256', cookie).update(`state ${consentPortalArn}`).digest('base64url');
    const before = provider.asked.length;
    const search = new URLSearchParams({ code: 'guessed', state, iss: provider.issuer });
    expect((await forger.send(`${portalUrl}/callback?${search}`)).status).toBe(403);
    expect(provider.asked.length).toBe(before);
    // The control: one that was begun here is asked for, once.
    const back = await begun(forger);
    back.searchParams.set('code', 'guessed');
    expect((await forger.send(back.href)).status).toBe(502);
    expect((await forger.send(back.href)).status).toBe(403);
    expect(provider.asked.length).toBe(before + 1);
  });

  it('gives who signs in another cookie than he came with (session fixation)', async () => {
    const name = `agentplatform-portal-${portal.consentPortalId}`;
    const fixed = 'm'.repeat(43);
    const browser = new Browser();
    browser.plant(url(), name, fixed);
    const back = await begun(browser);
    expect((await browser.send(back.href)).status).toBe(303);
    expect(browser.cookie(url(), name)).toMatch(/^[\w-]{43}$/);
    expect(browser.cookie(url(), name)).not.toBe(fixed);
    const mallory = new Browser();
    mallory.plant(url(), name, fixed);
    expect(await (await mallory.send(url())).text()).not.toContain('You are signed in');
    // One who has signed in and does so again: the old cookie is over.
    const old = browser.cookie(url(), name) ?? '';
    await browser.send((await begun(browser)).href);
    mallory.plant(url(), name, old);
    expect(await (await mallory.send(url())).text()).not.toContain('You are signed in');
    mallory.plant(url(), name, browser.cookie(url(), name) ?? '');
    expect(await (await mallory.send(url())).text()).toContain('You are signed in');
  });

  it('leads nowhere but to the provider and itself (open redirect), and takes no form of others', async () => {
    const browser = new Browser();
    const evil = 'https://evil.example/';
    const search = new URLSearchParams(
      ['next', 'return_to', 'redirect_uri', 'rd', 'url', 'state'].map((name): [string, string] => [name, evil]),
    );
    const toProvider = await browser.send(`${url()}/sign-in?${search}`);
    const location = new URL(toProvider.headers.get('location') ?? '');
    expect(location.origin).toBe(provider.issuer);
    expect(location.searchParams.get('redirect_uri')).toBe(`${url()}/callback`);
    expect(location.href).not.toContain('evil');
    const back = await begun(browser);
    for (const [name, value] of search) if (name !== 'state') back.searchParams.set(name, value);
    expect((await browser.send(back.href)).headers.get('location')).toBe(url());
    const post = (form: Record<string, string>) =>
      browser.send(url(), { method: 'POST', body: new URLSearchParams(form) });
    const { token = '' } = fieldsOf(await (await browser.send(url())).text());
    for (const wrong of ['', 'x', `${token.slice(0, -1)}_`])
      expect((await post({ token: wrong, signOut: 'yes' })).status).toBe(403);
    const out = await post({ token, signOut: 'yes' });
    expect([out.status, out.headers.get('location')]).toEqual([303, url()]);
    expect(await (await browser.send(url())).text()).toContain('Sign in');
  });

  it('is gone with all who had signed in when it is deleted', async () => {
    const consentPortalIdentifier = portal.consentPortalId ?? '';
    await clients.control.send(new DeleteConsentPortalCommand({ consentPortalIdentifier }));
    expect((await new Browser().send(url())).status).toBe(404);
    const gone = clients.control.send(new GetConsentPortalCommand({ consentPortalIdentifier }));
    await expect(gone).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
  });
});
