import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  InvokeBrowserCommand,
  StopBrowserSessionCommand,
  UpdateBrowserStreamCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import {
  type BrowserSession,
  BUILT_IN,
  handshakeHeaders,
  liveViewUrl,
  needChromium,
  RawCdp,
  startBrowserSession,
} from '../support/browser-session.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { newUser } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

/** Where pictures of the page are kept for people to look at; none are made without it. */
const PICTURES = process.env.LIVE_VIEW_PICTURES;
let platform: TestPlatform;
let clients: Clients;
let session: BrowserSession;
/** The browser of the person who watches. */
let persons: Browser;
let person: BrowserContext;

beforeAll(async () => {
  needChromium();
  platform = await startTestPlatform({ env: { AGENTPLATFORM_BROWSER_WARM_SESSIONS: '0' } });
  clients = clientsOf(platform);
  session = await startBrowserSession(clients, { viewPort: { width: 1000, height: 600 } });
  persons = await chromium.launch({ executablePath: '/usr/lib/chromium/chromium', args: ['--no-sandbox'] });
  person = await persons.newContext({ viewport: { width: 1280, height: 860 }, hasTouch: true });
  await person.grantPermissions(['clipboard-read', 'clipboard-write']);
}, 400_000);

afterAll(async () => {
  await persons?.close();
  clients?.close();
  await platform?.dispose();
});

afterEach(async () => {
  for (const page of person.pages()) await page.close();
  const streamUpdate = { automationStreamUpdate: { streamStatus: 'ENABLED' as const } };
  const of = { browserIdentifier: BUILT_IN, sessionId: session.id };
  await clients.data.send(new UpdateBrowserStreamCommand({ ...of, streamUpdate })).catch(() => undefined);
});

const program = async (to = session): Promise<Browser> =>
  chromium.connectOverCDP(to.automation, { headers: await handshakeHeaders(platform, to.automation) });
const first = (browser: Browser): Page => {
  const page = browser.contexts()[0]?.pages()[0];
  if (!page) throw new Error('the session has no page');
  return page;
};
const picture = async (page: Page, name: string): Promise<void> => {
  if (PICTURES === undefined) return;
  await mkdir(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `${name}.png`) });
};

/** The colour in the middle of what the person sees, as `r,g,b`; undefined before the first picture. */
const middle = (view: Page) =>
  view.evaluate(`(() => {
    const screen = document.getElementById('screen');
    if (!screen.dataset.shown) return undefined;
    const at = screen.getContext('2d').getImageData(screen.width / 2, screen.height / 2, 1, 1).data;
    return [...at].slice(0, 3).map((one) => Math.round(one / 51) * 51).join();
  })()`);

async function watch(options: Parameters<typeof liveViewUrl>[2] = {}): Promise<Page> {
  const view = await person.newPage();
  const problems: string[] = [];
  view.on('pageerror', (error) => problems.push(error.message));
  view.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  await view.goto(await liveViewUrl(platform, session, options));
  await expect.poll(() => middle(view), { timeout: 30_000 }).not.toBe(undefined);
  expect(problems).toEqual([]);
  return view;
}

describe('the page of the live view', () => {
  it('shows the page in front, also after a reload, follows the program to other tabs, and is without inline script', async () => {
    const browser = await program();
    const page = first(browser);
    await page.setContent('<title>Green</title><body style="background:#0f0">');
    const view = await watch();
    await expect.poll(() => middle(view)).toBe('0,255,0');
    expect(await view.title()).toBe('Green (live view)');
    await view.reload();
    await expect.poll(() => middle(view)).toBe('0,255,0');
    const second = await page.context().newPage();
    await second.setContent('<title>Blue</title><body style="background:#00f">');
    await expect.poll(() => middle(view)).toBe('0,0,255');
    await expect.poll(() => view.locator('.tab .title').allTextContents()).toEqual(['Green', 'Blue']);
    await page.bringToFront();
    await expect.poll(() => middle(view)).toBe('0,255,0');
    await second.close();
    await expect.poll(() => view.locator('.tab .title').allTextContents()).toEqual(['Green']);
    await picture(view, 'watching');
    const answer = await fetch(`${platform.ready.endpoint}/browser-streams/live-view`);
    const policy = answer.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain(`script-src ${platform.ready.endpoint}/browser-streams/live-view.js;`);
    expect(policy).not.toContain('unsafe');
    expect(await answer.text()).not.toMatch(/<script(?![^>]*src=)|\son[a-z]+=|style=/);
    await view.close();
    await browser.close();
  });

  it('takes control: mouse, keyboard, clipboard, touch and files reach the page, programs are cut off; and gives it back', async () => {
    const browser = await program();
    await first(browser).setContent(`<title>A form</title><style>body{margin:0}*{box-sizing:border-box}
      input,button,div{position:absolute;left:100px;width:300px;height:60px;font-size:20px}</style>
      <input id=name style="top:50px"><input id=file type=file multiple style="top:150px"><button style="top:250px">Press</button><div id=touched style="top:350px;background:#ccc"></div>`);
    await first(browser).evaluate(`document.querySelector('button').onclick = () => { document.title = 'pressed'; };
      document.querySelector('#touched').addEventListener('touchstart', () => { document.title = 'touched'; });`);
    const cdp = await RawCdp.open(session.automation, await handshakeHeaders(platform, session.automation));
    const view = await watch();
    const screen = view.locator('#screen');
    const at = async (x: number, y: number) => {
      const box = await screen.boundingBox();
      if (!box) throw new Error('no screen');
      return { x: box.x + (x / 1000) * box.width, y: box.y + (y / 600) * box.height };
    };
    const click = async (x: number, y: number) => {
      const { x: left, y: top } = await at(x, y);
      await view.mouse.click(left, top);
    };
    const titled = (title: string) => expect.poll(() => view.title()).toBe(`${title} (live view)`);
    // The control: as long as a program drives, a person does nothing to the page.
    await click(200, 280);
    await view.click('#control');
    await expect.poll(() => view.textContent('#control')).toBe('Give back control');
    await titled('A form');
    expect((await cdp.closed).code).toBe(4001);
    await expect(program()).rejects.toThrow('409');

    await click(200, 280);
    await titled('pressed');
    await click(200, 80);
    await view.keyboard.type('Hello');
    await view.keyboard.press('Backspace');
    await view.keyboard.press('Control+a');
    await view.keyboard.press('Control+c');
    await expect.poll(() => view.evaluate('navigator.clipboard.readText()')).toBe('Hell');
    await view.evaluate(`navigator.clipboard.writeText('Jürgen 你好')`);
    await view.keyboard.press('Control+v');
    const touch = await at(200, 380);
    await view.touchscreen.tap(touch.x, touch.y);
    await titled('touched');
    await click(200, 180);
    await view.waitForSelector('#files[open]');
    await view.setInputFiles('#picked', [
      { name: 'one.txt', mimeType: 'text/plain', buffer: Buffer.from('first') },
      { name: 'two.txt', mimeType: 'text/plain', buffer: Buffer.from('second file') },
    ]);
    await view.click('#files button.main');
    await picture(view, 'control');
    await view.click('#control');
    await expect.poll(() => view.textContent('#control')).toBe('Take control');

    const again = await program();
    expect(await first(again).inputValue('#name')).toBe('Jürgen 你好');
    await expect
      .poll(() =>
        first(again).evaluate(
          `Promise.all([...document.querySelector('#file').files].map(async (file) => file.name + ' ' + await file.text()))`,
        ),
      )
      .toEqual(['one.txt first', 'two.txt second file']);
    await again.close();
    await view.close();
  });

  it('answers dialogs, opens and closes tabs and addresses for who has control', async () => {
    const view = await watch();
    await view.click('#control');
    await expect.poll(() => view.textContent('#control')).toBe('Give back control');
    await view.click('text="+"');
    await expect.poll(() => view.locator('.tab .title').count()).toBe(2);
    await view.fill(
      '#address',
      'data:text/html,<title>Asks</title><body onclick="document.title=prompt(`Your name?`)">',
    );
    await view.press('#address', 'Enter');
    await expect
      .poll(async () => [await view.title(), await view.textContent('#problem')])
      .toEqual(['Asks (live view)', '']);
    await view.click('#screen');
    await view.fill('#answer', 'Ann');
    expect(await view.textContent('#asked')).toBe('Your name?');
    await view.click('#question button.main');
    await expect.poll(() => view.title()).toBe('Ann (live view)');
    await view.click('[aria-label="Close Ann"]');
    await expect.poll(() => view.locator('.tab .title').count()).toBe(1);
    await view.click('#control');
    await expect.poll(() => view.textContent('#control')).toBe('Take control');
    await view.close();
  });

  it('is shared to be looked at only: whoever has that address sees, and does nothing', async () => {
    const browser = await program();
    await first(browser).setContent(
      '<title>Only seen</title><body style="background:#f00" onclick="document.title=`clicked`">',
    );
    const view = await watch();
    await view.click('#share');
    await view.waitForSelector('#link[open]');
    const address = await view.inputValue('#link-text');
    await browser.close();
    const guest = await person.newPage();
    await guest.goto(address);
    await expect.poll(() => middle(guest)).toBe('255,0,0');
    expect(await guest.isVisible('#control')).toBe(false);
    await picture(guest, 'shared');
    // Not by the page's manners alone: the server refuses it.
    const { socket, messages } = await rawView(address);
    for (const message of [
      { type: 'control', take: true },
      { type: 'navigate', url: 'about:blank' },
      { type: 'share' },
    ])
      socket.send(JSON.stringify(message));
    await expect.poll(() => messages.filter(({ type }) => type === 'problem').length).toBe(3);
    expect(messages.filter(({ type }) => type === 'shared')).toEqual([]);
    socket.terminate();
    const full = await watch({ readOnly: true });
    expect(await full.isVisible('#control')).toBe(false);
    for (const page of [view, guest, full]) await page.close();
  });

  it('stands in a frame where it is allowed', async () => {
    const answer = await fetch(`${platform.ready.endpoint}/browser-streams/live-view`);
    expect(answer.headers.get('content-security-policy')).toMatch(/frame-ancestors 'self'$/);
    const url = await liveViewUrl(platform, session, { embed: true });
    const { status, headers } = await fetch(url, { redirect: 'manual' });
    expect([status, headers.get('location')]).toEqual([303, expect.stringContaining('/live-view?embed#')]);
  });
});

/** A client of the stream that sees nothing unless it says so. */
async function rawView(address: string) {
  const { origin, hash } = new URL(address);
  const { browser = '', session: id = '', ticket = '' } = Object.fromEntries(new URLSearchParams(hash.slice(1)));
  const url = `${origin.replace('http', 'ws')}/browser-streams/${browser}/sessions/${id}/live-view`;
  const socket = new WebSocket(url, ['agentplatform.live-view', ticket]);
  const messages: { type: string }[] = [];
  let frames = 0;
  socket.on('message', (message, isBinary) => {
    if (isBinary) frames += 1;
    else messages.push(JSON.parse(String(message)));
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('unexpected-response', (_request, response) => {
      reject(new Error(`status ${response.statusCode}`));
      response.destroy();
    });
    socket.once('error', reject);
  });
  return { socket, messages, frames: () => frames };
}

/** Where the presigned address leads. */
async function pageOf(url: string): Promise<string> {
  const { headers, status } = await fetch(url, { redirect: 'manual' });
  expect(status).toBe(303);
  return new URL(headers.get('location') ?? '', url).href;
}

describe('an address of the live view', () => {
  it('counts with its signature alone, for who may use the session, and its ticket for that session', async () => {
    const url = await liveViewUrl(platform, session);
    for (const wrong of [
      url.split('?')[0] ?? '',
      url.replace(/X-Amz-Signature=./, 'X-Amz-Signature=g'),
      `${url}&mode=full`,
      url.replace(session.id, 'a'.repeat(32)),
    ])
      expect([400, 403], wrong).toContain((await fetch(wrong, { redirect: 'manual' })).status);
    const bob = await newUser(platform, 'bob', [{ Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource: '*' }]);
    const his = await liveViewUrl(platform, session, { credentials: bob });
    expect((await fetch(his, { redirect: 'manual' })).status).toBe(404);
    const page = await pageOf(url);
    const open = await rawView(page);
    open.socket.terminate();
    const other = await startBrowserSession(clients);
    for (const wrong of [page.replace(/ticket=./, 'ticket=_'), page.replace(session.id, other.id)])
      await expect(rawView(wrong)).rejects.toThrow('status 403');
    await clients.data.send(new StopBrowserSessionCommand({ browserIdentifier: BUILT_IN, sessionId: other.id }));
  });
});

describe('a reader of the live view that is slow', () => {
  it('is sent no more pictures than it has seen, and the latest when it reads again; automation goes on', async () => {
    const { socket, frames } = await rawView(await pageOf(await liveViewUrl(platform, session)));
    const browser = await program();
    const page = first(browser);
    await page.setContent('<body>');
    for (let step = 0; step < 60; step += 1)
      await page.evaluate(`document.body.style.background = 'rgb(0, ${step}, 0)'; new Promise(requestAnimationFrame)`);
    // Two that are not seen, and two that the browser had made by then.
    expect(frames()).toBeLessThanOrEqual(4);
    const before = frames();
    for (const seen of [1, 2, 3]) socket.send(JSON.stringify({ type: 'seen', seen }));
    await page.evaluate(`document.body.style.background = 'red'`);
    await expect.poll(frames).toBeGreaterThan(before);
    socket.terminate();
    await browser.close();
  });
});

describe('InvokeBrowser', () => {
  it('takes the page in front where every page says that it is visible', async () => {
    const browser = await program();
    const page = first(browser);
    const second = await page.context().newPage();
    await page.setContent('<title>first</title>');
    await second.setContent('<title>second</title>');
    const pressed = 'onkeydown = () => { document.title = "pressed"; }';
    for (const one of [page, second]) await one.evaluate(pressed);
    const titles = async () => [await page.title(), await second.title()];
    const press = () =>
      clients.data.send(
        new InvokeBrowserCommand({
          browserIdentifier: BUILT_IN,
          sessionId: session.id,
          action: { keyPress: { key: 'x' } },
        }),
      );
    expect(await Promise.all([page, second].map((one) => one.evaluate('document.visibilityState')))).toEqual([
      'visible',
      'visible',
    ]);
    await press();
    expect(await titles()).toEqual(['first', 'pressed']);
    await second.evaluate('document.title = "second"');
    await page.bringToFront();
    await press();
    expect(await titles()).toEqual(['pressed', 'second']);
    await second.close();
    await browser.close();
  });
});

describe('a session that ends', () => {
  it('is said to have ended, and the last picture stays', async () => {
    const view = await watch();
    await clients.data.send(new StopBrowserSessionCommand({ browserIdentifier: BUILT_IN, sessionId: session.id }));
    await expect.poll(() => view.textContent('#cover')).toBe('The session has ended.');
    expect(await middle(view)).not.toBe(undefined);
    await picture(view, 'ended');
    if (PICTURES !== undefined) await writeFile(join(PICTURES, 'log.txt'), platform.log());
    await view.close();
  });
});
