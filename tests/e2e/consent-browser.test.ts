import { join } from 'node:path';
import {
  GetResourceOauth2TokenCommand,
  GetWorkloadAccessTokenForUserIdCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateOauth2CredentialProviderCommand,
  CreateWorkloadIdentityCommand,
  UpdateOauth2CredentialProviderCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useChromium } from '../../packages/handset/test/support/chromium.ts';
import {
  type ConsentProvider,
  startConsentProvider,
} from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

/** Where pictures for the guide go; none are made when absent. */
const IMAGES = process.env.AGENTPLATFORM_TEST_IMAGES;
const PHONE = { width: 360, height: 740 };
const DESKTOP = { width: 1024, height: 720 };

const chromium = useChromium();
const redirectUris: string[] = [];
let platform: TestPlatform;
let clients: Clients;
let provider: ConsentProvider;

async function makeProvider(name: string): Promise<string> {
  const config = (discoveryUrl: string) => ({
    name,
    credentialProviderVendor: 'CustomOauth2' as const,
    oauth2ProviderConfigInput: {
      customOauth2ProviderConfig: {
        oauthDiscovery: { discoveryUrl },
        clientId: provider?.clientId ?? 'later',
        clientSecret: provider?.clientSecret ?? 'later',
      },
    },
  });
  const later = config('https://later.example/.well-known/openid-configuration');
  const { callbackUrl = '' } = await clients.control.send(new CreateOauth2CredentialProviderCommand(later));
  redirectUris.push(callbackUrl);
  provider ??= await startConsentProvider({ redirectUris });
  await clients.control.send(new UpdateOauth2CredentialProviderCommand(config(provider.discoveryUrl)));
  return callbackUrl;
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

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  await makeProvider('orders');
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
  if (IMAGES) await page.screenshot({ path: join(IMAGES, `${name}.png`) });
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
    const seen = await page.evaluate(() => ({
      wide: document.documentElement.scrollWidth > window.innerWidth,
      heights: [...document.querySelectorAll('button')].map((one) => one.getBoundingClientRect().height),
      letters: Number.parseFloat(getComputedStyle(document.body).fontSize),
      paper: getComputedStyle(document.body).backgroundColor,
    }));
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
