import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GetBrowserSessionCommand, StopBrowserSessionCommand } from '@aws-sdk/client-bedrock-agentcore';
import { CreateBrowserCommand, GetBrowserCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { CreateBucketCommand, GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentcoreInside } from '../../packages/cli/test/agentcore.ts';
import {
  type BrowserSession,
  handshakeHeaders,
  needChromium,
  RawCdp,
  startBrowserSession,
} from '../support/browser-session.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { newUser } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const PICTURES = process.env.LIVE_VIEW_PICTURES;
const BUCKET = 'recordings';
const env = { AGENTPLATFORM_BROWSER_WARM_SESSIONS: '0' };
let folder: string;
let platform: TestPlatform;
let clients: Clients;
let s3: S3Client;
let browserId: string;
let session: BrowserSession;

const network = { networkMode: 'PUBLIC' } as const;
const recording = (bucket: string) => ({ enabled: true, s3Location: { bucket, prefix: '/shop/' } });

beforeAll(async () => {
  needChromium();
  folder = await mkdtemp(join(tmpdir(), 'agentplatform-recording-'));
  const data = join(folder, 'data');
  platform = await startTestPlatform({ env, dataDir: data });
  clients = clientsOf(platform);
  s3 = new S3Client({
    ...{ endpoint: `${platform.ready.endpoint}/s3`, region: platform.ready.region, forcePathStyle: true },
    credentials: platform.credentials,
  });
  await s3.send(new CreateBucketCommand({ Bucket: BUCKET }));
  const make = { name: 'recorded', networkConfiguration: network, recording: recording(BUCKET) };
  browserId = (await clients.control.send(new CreateBrowserCommand(make))).browserId ?? '';
  session = await startBrowserSession(clients, { browserIdentifier: browserId, viewPort: { width: 800, height: 600 } });
}, 400_000);

afterAll(async () => {
  s3?.destroy();
  clients?.close();
  await platform?.dispose();
  await rm(folder, { recursive: true, force: true });
});

const drive = async (): Promise<{ browser: Browser; page: Page }> => {
  const headers = await handshakeHeaders(platform, session.automation);
  const browser = await chromium.connectOverCDP(session.automation, { headers });
  const page = browser.contexts()[0]?.pages()[0] ?? (await browser.newPage());
  await page
    .context()
    .route(/^https:/, (route) =>
      route.fulfill({ contentType: 'text/html', body: '<title>The shop</title><body><button>Buy</button>' }),
    );
  return { browser, page };
};

interface Entry {
  at: number;
  kind: string;
  [more: string]: unknown;
}

/** Everything that is stored by now, in the order of its segments. */
async function stored(): Promise<Entry[]> {
  const { Contents = [] } = await s3.send(
    new ListObjectsV2Command({ Bucket: BUCKET, Prefix: `shop/${session.id}/segments/` }),
  );
  const segments = await Promise.all(
    Contents.map(async ({ Key }) => {
      const { Body } = await s3.send(new GetObjectCommand({ Bucket: BUCKET, Key }));
      return JSON.parse((await Body?.transformToString()) ?? '').entries as Entry[];
    }),
  );
  return segments.flat();
}
const storedLike = (wanted: object) =>
  expect.poll(stored, { timeout: 60_000 }).toContainEqual(expect.objectContaining(wanted));

describe('the recording of a session', () => {
  it('goes where its browser says, to a bucket that its maker may write to', async () => {
    expect(await clients.control.send(new GetBrowserCommand({ browserId }))).toMatchObject({
      recording: { enabled: true, s3Location: { bucket: BUCKET, prefix: 'shop' } },
    });
    const of = { browserIdentifier: browserId, sessionId: session.id };
    expect((await clients.data.send(new GetBrowserSessionCommand(of))).sessionReplayArtifact).toBe(
      `s3://${BUCKET}/shop/${session.id}/`,
    );
    const make = (name: string, bucket: string) =>
      new CreateBrowserCommand({ name, networkConfiguration: network, recording: recording(bucket) });
    await expect(clients.control.send(make('elsewhere', 'no-such-bucket'))).rejects.toMatchObject({
      name: 'ValidationException',
      message: expect.stringContaining('recording.s3Location.bucket'),
    });
    const bob = clientsOf(platform, {
      credentials: await newUser(platform, 'bob', [{ Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource: '*' }]),
    });
    await expect(bob.control.send(make('of_bob', BUCKET))).rejects.toMatchObject({ name: 'AccessDeniedException' });
    bob.close();
  });

  it('has pictures, navigations, requests, the console and what programs do, with their times and no typed text', async () => {
    const { browser, page } = await drive();
    await page.goto('https://shop.example/');
    await page.evaluate(`console.warn('sold out', 3)`);
    await page.evaluate(`document.body.style.background = '#0f0'`);
    await page.click('button');
    await page.keyboard.insertText('a secret word');
    await storedLike({ kind: 'navigation', url: 'https://shop.example/' });
    await storedLike({ kind: 'request', method: 'GET', url: 'https://shop.example/' });
    await storedLike({ kind: 'response', status: 200 });
    await storedLike({ kind: 'console', level: 'warning', text: 'sold out 3' });
    await storedLike({ kind: 'page', title: 'The shop' });
    await storedLike({ kind: 'action', method: 'Page.navigate', what: 'https://shop.example/' });
    await storedLike({
      kind: 'action',
      method: 'Input.dispatchMouseEvent',
      what: expect.stringMatching(/^mousePressed \(/),
    });
    await storedLike({ kind: 'action', method: 'Input.insertText', what: '13 characters' });
    const entries = await stored();
    expect(entries.some(({ kind, jpeg }) => kind === 'picture' && String(jpeg).startsWith('/9j/'))).toBe(true);
    expect(JSON.stringify(entries)).not.toContain('a secret word');
    await browser.close();
  });

  it('goes on when the browser breaks down, and when the server is killed: what was a second old is there', async () => {
    const raw = await RawCdp.open(session.automation, await handshakeHeaders(platform, session.automation));
    await raw.send('Browser.crash').catch(() => undefined);
    await raw.closed;
    await storedLike({ kind: 'console', text: 'The connection with the browser ended.' });
    await expect
      .poll(
        () =>
          drive().then(
            ({ browser }) => browser.close().then(() => true),
            () => false,
          ),
        { timeout: 60_000 },
      )
      .toBe(true);
    const before = await drive();
    await before.page.goto('https://before.example/');
    await storedLike({ kind: 'navigation', url: 'https://before.example/' });
    const { port } = new URL(platform.ready.endpoint);
    await platform.end('SIGKILL');
    platform = await startTestPlatform({ env, dataDir: platform.dataDir, port: Number(port) });
    const after = await drive();
    await after.page.goto('https://after.example/');
    await storedLike({ kind: 'navigation', url: 'https://after.example/' });
    await storedLike({ kind: 'navigation', url: 'https://before.example/' });
    await after.browser.close();
  });

  it('is saved as one page that plays it and shows the picture of what is clicked', async () => {
    const { browser, page } = await drive();
    for (const [name, colour] of [
      ['Red', '#f00'],
      ['Blue', '#00f'],
    ]) {
      await page.evaluate(
        `document.title = '${name}'; document.body.style.background = '${colour}'; console.log('</script>${name}')`,
      );
      await storedLike({ kind: 'console', text: `</script>${name}` });
      await storedLike({ kind: 'page', title: name });
    }
    await page.evaluate(`console.log('end')`);
    await storedLike({ kind: 'console', text: 'end' });
    await browser.close();
    await clients.data.send(new StopBrowserSessionCommand({ browserIdentifier: browserId, sessionId: session.id }));
    const cli = (...args: string[]) =>
      agentcoreInside(['browser', 'replay', ...args], { cwd: folder, env: platform.env, stdin: '' });
    expect(await cli(session.id, '--browser', browserId)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('replay.html'),
    });
    expect((await readFile(join(folder, 'replay.html'), 'utf8')).slice(0, 15)).toBe('<!doctype html>');
    expect(await cli('s3://recordings/nothing/')).toMatchObject({ code: 4 });

    const own = await chromium.launch({ executablePath: '/usr/lib/chromium/chromium', args: ['--no-sandbox'] });
    const replay = await own.newPage({ viewport: { width: 1280, height: 720 } });
    const problems: string[] = [];
    replay.on('pageerror', ({ message }) => problems.push(message));
    await replay.goto(`file://${join(folder, 'replay.html')}`);
    const middle = () =>
      replay.evaluate(`(async () => {
        const picture = document.getElementById('picture');
        await picture.decode();
        const canvas = new OffscreenCanvas(picture.naturalWidth, picture.naturalHeight);
        const paper = canvas.getContext('2d');
        paper.drawImage(picture, 0, 0);
        const at = paper.getImageData(canvas.width / 2, canvas.height / 2, 1, 1).data;
        return [...at].slice(0, 3).map((one) => Math.round(one / 51) * 51).join();
      })()`);
    await replay.click('text=</script>Blue');
    await expect.poll(middle).toMatch(/^(255,0,0|0,0,255)$/);
    await replay.click('text=log: end');
    await expect.poll(middle).toBe('0,0,255');
    expect(await replay.textContent('#address')).toContain('Blue');
    if (PICTURES !== undefined) await replay.screenshot({ path: join(PICTURES, 'replay.png') });
    await replay.click('#play');
    await expect.poll(() => replay.textContent('#play')).toBe('Pause');
    expect(problems).toEqual([]);
    await own.close();
  });
});
