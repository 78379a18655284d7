import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import {
  GetBrowserSessionCommand,
  SaveBrowserSessionProfileCommand,
  StopBrowserSessionCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateBrowserProfileCommand,
  DeleteBrowserProfileCommand,
  GetBrowserProfileCommand,
  ListBrowserProfilesCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type BrowserSession,
  BUILT_IN,
  handshakeHeaders,
  needChromium,
  startBrowserSession,
} from '../support/browser-session.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { newUser } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const run = promisify(execFile);
const SHOP = 'https://shop.example';
const BANK = 'https://bank.example';
/** Found nowhere but in the storage of sites. */
const CANARY = 'canary-7f3b1c9a55e0';
let platform: TestPlatform;
let clients: Clients;

beforeAll(async () => {
  needChromium();
  platform = await startTestPlatform({ env: { AGENTPLATFORM_BROWSER_WARM_SESSIONS: '0' } });
  clients = clientsOf(platform);
}, 400_000);

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

/** A session, begun with a profile or none, and a page whose sites nobody asks a network for. */
async function visit(profileIdentifier?: string): Promise<{ session: BrowserSession; browser: Browser; page: Page }> {
  const more = profileIdentifier === undefined ? {} : { profileConfiguration: { profileIdentifier } };
  const session = await startBrowserSession(clients, more);
  const headers = await handshakeHeaders(platform, session.automation);
  const browser = await chromium.connectOverCDP(session.automation, { headers });
  const [context] = browser.contexts();
  const page = context?.pages()[0];
  if (!context || !page) throw new Error('the session has no page');
  await context.route(/^https:/, (route) => route.fulfill({ contentType: 'text/html', body: '<title>a site</title>' }));
  return { session, browser, page };
}
const leave = async ({ session, browser }: { session: BrowserSession; browser: Browser }): Promise<void> => {
  await browser.close();
  await clients.data.send(new StopBrowserSessionCommand({ browserIdentifier: BUILT_IN, sessionId: session.id }));
};
const make = async (name: string): Promise<string> =>
  (await clients.control.send(new CreateBrowserProfileCommand({ name }))).profileId ?? '';
const save = (profileIdentifier: string, { id: sessionId }: BrowserSession) =>
  clients.data.send(
    new SaveBrowserSessionProfileCommand({ profileIdentifier, browserIdentifier: BUILT_IN, sessionId }),
  );
const keep = async (page: Page, site: string, value: string): Promise<void> => {
  await page.goto(`${site}/`);
  await page.evaluate(`localStorage.setItem('cart', '${value}'); document.cookie = 'login=${value}; max-age=86400; secure';
    document.cookie = 'visit=${value}'`);
};
const kept = async (page: Page, site: string): Promise<unknown> => {
  await page.goto(`${site}/`);
  return page.evaluate(`[localStorage.getItem('cart'), document.cookie.split('; ').sort().join()]`);
};
const NOTHING = [null, ''];

describe('a browser profile', () => {
  it('gives cookies and local storage of all sites to sessions that begin with it, and to no others', async () => {
    const [mine, other] = [await make('mine'), await make('other')];
    const first = await visit();
    await keep(first.page, SHOP, CANARY);
    await keep(first.page, BANK, 'b');
    const saved = await save(mine, first.session);
    expect(saved).toMatchObject({ profileIdentifier: mine, browserIdentifier: BUILT_IN, sessionId: first.session.id });
    // Saving leaves the session as it is, with its one page.
    expect(first.page.context().pages()).toHaveLength(1);
    expect(await kept(first.page, SHOP)).toEqual([CANARY, `login=${CANARY},visit=${CANARY}`]);
    expect(await clients.control.send(new GetBrowserProfileCommand({ profileId: mine }))).toMatchObject({
      name: 'mine',
      status: 'READY',
      lastSavedBrowserId: BUILT_IN,
      lastSavedBrowserSessionId: first.session.id,
      lastSavedAt: expect.any(Date),
    });
    await leave(first);

    const second = await visit(mine);
    const of = { browserIdentifier: BUILT_IN, sessionId: second.session.id };
    expect(await clients.data.send(new GetBrowserSessionCommand(of))).toMatchObject({
      profileConfiguration: { profileIdentifier: mine },
    });
    expect(await kept(second.page, SHOP)).toEqual([CANARY, `login=${CANARY},visit=${CANARY}`]);
    expect(await kept(second.page, BANK)).toEqual(['b', 'login=b,visit=b']);
    await leave(second);
    for (const profile of [other, undefined]) {
      const stranger = await visit(profile);
      expect(await kept(stranger.page, SHOP)).toEqual(NOTHING);
      await leave(stranger);
    }
  });

  it('is copied to each of two sessions that use it at once; the one that is saved later stays, whole', async () => {
    const profile = await make('shared');
    const before = await visit();
    await keep(before.page, SHOP, 'first');
    await save(profile, before.session);
    await leave(before);
    const [one, two] = [await visit(profile), await visit(profile)];
    await keep(one.page, SHOP, 'one');
    await keep(one.page, BANK, 'one');
    // What the one does the other does not see.
    expect(await kept(two.page, SHOP)).toEqual(['first', 'login=first,visit=first']);
    await save(profile, one.session);
    expect(await kept(two.page, BANK)).toEqual(NOTHING);
    await save(profile, two.session);
    await leave(one);
    await leave(two);
    const after = await visit(profile);
    expect(await kept(after.page, SHOP)).toEqual(['first', 'login=first,visit=first']);
    expect(await kept(after.page, BANK)).toEqual(NOTHING);
    await leave(after);
  });

  it('is listed by name, belongs to who may use it, holds no more than its quota, and is gone when it is deleted', async () => {
    const profile = await make('small');
    const { profileSummaries } = await clients.control.send(new ListBrowserProfilesCommand({ name: 'small' }));
    expect(profileSummaries).toMatchObject([{ profileId: profile, name: 'small', status: 'READY' }]);
    await expect(make('small')).rejects.toMatchObject({ name: 'ConflictException' });
    const big = await visit();
    await big.page.goto(`${SHOP}/`);
    for (const site of [SHOP, BANK, 'https://third.example']) {
      await big.page.goto(`${site}/`);
      await big.page.evaluate(`localStorage.setItem('big', 'x'.repeat(4_000_000))`);
    }
    await expect(save(profile, big.session)).rejects.toMatchObject({ name: 'ServiceQuotaExceededException' });
    await leave(big);
    await expect(save(profile, big.session)).rejects.toMatchObject({ name: 'ResourceNotFoundException' });

    const allowed = [
      { Effect: 'Allow' as const, Action: 'bedrock-agentcore:*', Resource: '*' },
      { Effect: 'Deny' as const, Action: '*', Resource: `arn:aws:bedrock-agentcore:*:*:browser-profile/${profile}` },
    ];
    const bob = clientsOf(platform, { credentials: await newUser(platform, 'bob', allowed) });
    await expect(
      startBrowserSession(bob, { profileConfiguration: { profileIdentifier: profile } }),
    ).rejects.toMatchObject({ name: 'AccessDeniedException' });
    bob.close();
    expect((await clients.control.send(new DeleteBrowserProfileCommand({ profileId: profile }))).status).toBe(
      'DELETING',
    );
    await expect(visit(profile)).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
  });

  it('lies on the platform’s disk only sealed', async () => {
    const found = (text: string) =>
      run('grep', ['-rlaF', text, platform.dataDir]).then(
        ({ stdout }) => stdout.trim().split('\n'),
        () => [],
      );
    await platform.end();
    // The control: what is not secret is found.
    expect(await found('lastSaved').then(() => found('shared-'))).not.toEqual([]);
    expect(await found(CANARY)).toEqual([]);
  });
});
