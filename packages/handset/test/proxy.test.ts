import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAssembler } from '../src/build/assembler.ts';
import { DEVICES } from '../src/preview/devices.ts';
import { openProject } from '../src/project/project.ts';
import type { Exchange } from '../src/proxy/exchange.ts';
import { type ProxyOptions, type ProxyServer, startProxy } from '../src/proxy/proxy-server.ts';
import { useChromium } from './support/chromium.ts';
import { startHandset } from './support/cli.ts';
import { eventually, walkThroughNews } from './support/news.ts';
import { newsCopy, smallProject, text, write } from './support/project.ts';

const { browser } = useChromium();

interface Proxied {
  readonly proxy: ProxyServer;
  readonly exchanges: Exchange[];
  readonly refused: string[];
  /** A phone that opens the application. */
  phone(options?: BrowserContextOptions): Promise<Page>;
}

async function proxied(root: string, options: Partial<ProxyOptions> = {}): Promise<Proxied> {
  const { settings, plugins } = await openProject(root);
  const { outputs, problems } = await createAssembler({ root, settings, plugins, production: false }).assemble();
  if (!outputs) throw new Error(JSON.stringify(problems));
  const exchanges: Exchange[] = [];
  const refused: string[] = [];
  const proxy = await startProxy({
    browser: browser(),
    outputs: () => outputs,
    device: DEVICES.touch,
    host: 'localhost',
    port: 0,
    preview: true,
    visits: 4,
    idle: 60_000,
    onExchange: (exchange) => exchanges.push(exchange),
    onRefused: (url) => refused.push(url),
    onPageError: () => undefined,
    ...options,
  });
  onTestFinished(() => proxy.close());
  return {
    proxy,
    exchanges,
    refused,
    async phone(more = {}) {
      const context = await browser().newContext({
        viewport: { width: 240, height: 400 },
        hasTouch: true,
        isMobile: true,
        ...more,
      });
      onTestFinished(() => context.close());
      const page = await context.newPage();
      await page.goto(proxy.url);
      return page;
    },
  };
}

/** The page that the proxy keeps for the one phone that is there. */
function livePage(): Page {
  const pages = browser()
    .contexts()
    .flatMap((context) => context.pages());
  const page = pages.find((one) => one.url().includes('handset.invalid'));
  if (!page) throw new Error('There is no live page.');
  return page;
}

/** A project whose page has this body and this script. */
const app = (body: string, script: string, config = ''): string =>
  smallProject({
    'app/assets/config.xml': `<widget xmlns="http://www.w3.org/ns/widgets"><name>small</name>${config}</widget>`,
    'app/index.pug': `doctype html\nhtml\n  head\n    title app\n    meta(name='viewport' content='width=device-width')\n  body\n${body.replace(/^/gm, '    ')}\n    script(src='javascripts/vendor.js')\n    script(src='javascripts/app.js')\n`,
    'app/main.js': script,
    'vendor/handset.js': LIBRARY,
  });

const { readFileSync } = await import('node:fs');
const LIBRARY = readFileSync(new URL('../client/handset.js', import.meta.url), 'utf8');

describe('the screen of a live page', () => {
  it.each(['', "meta(name='viewport' content='width=320')"])('is 240 wide with viewport meta "%s"', async (meta) => {
    const page = `doctype html\nhtml\n  head\n    ${meta || 'title wide'}\n  body\n    p#seen\n    div(style='height: 3000px') long\n    script(src='javascripts/app.js')\n`;
    const script = `document.getElementById('seen').textContent = [innerWidth, innerHeight, document.documentElement.clientWidth].join()`;
    const { phone } = await proxied(smallProject({ 'app/index.pug': page, 'app/main.js': script }));
    expect(await (await phone()).textContent('#seen')).toBe('240,400,240');
  });
});

describe('the news reader through handset proxy', () => {
  it('works as it does without a proxy', async () => {
    const { phone, exchanges } = await proxied(newsCopy());
    const page = await phone();
    await walkThroughNews(page);
    const kinds = exchanges.map((e) => e.kind);
    expect(kinds[0]).toBe('first load');
    expect(kinds.filter((k) => k === 'local').length).toBeGreaterThan(5);
    expect(kinds.filter((k) => k === 'round trip').length).toBeGreaterThan(8);
  });

  it('sends one flat document: no script of the application, no further request', async () => {
    const { phone } = await proxied(newsCopy());
    const page = await phone();
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    await page.reload();
    await page.tap('.open:has-text("Apples")');
    await page.locator('article').waitFor();
    expect(requests.filter((url) => !/\/v\/[0-9a-f]{32}(\/event)?$/.test(url) && !url.startsWith('data:'))).toEqual([]);
    const html = await page.content();
    expect(html).not.toMatch(/javascripts\/|showStory|news\.stories|pug/);
    expect(html).not.toMatch(/<[^>]+\son[a-z]+\s*=/i);
    expect(await page.locator('script').count()).toBe(1);
    // What is left for the phone is made of shortcuts alone.
    const actions = await page.evaluate(() => {
      const list: (string | null)[] = [];
      for (const element of Reflect.get(globalThis, 'document').querySelectorAll('[data-handset-click]')) {
        list.push(element.getAttribute('data-handset-click'));
      }
      return list.map((text) => Reflect.get(globalThis, 'handset').parse(text) !== null);
    });
    expect(actions.length).toBeGreaterThan(2);
    expect(actions).not.toContain(false);
  });

  it('answers on the phone without a request what shortcuts can answer', async () => {
    const { phone, exchanges } = await proxied(newsCopy());
    const page = await phone();
    const before = exchanges.length;
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    await page.tap('#more-2');
    await page.locator('#lead-2').waitFor();
    await page.keyboard.press('ArrowDown');
    await page.locator('.story.lit').waitFor();
    expect([requests, exchanges.length]).toEqual([[], before]);
    await page.tap('#search');
    await page.locator('#words').waitFor();
    // The shortcuts are told with the next round trip, in their order, and cost nothing themselves.
    expect(exchanges.slice(before).map((e) => [e.kind, e.bytesDown === 0])).toEqual([
      ['local', true],
      ['local', true],
      ['round trip', false],
    ]);
  });

  it('works on a phone that runs no script at all: then everything is a round trip', async () => {
    const { phone, exchanges } = await proxied(newsCopy());
    const page = await phone({ javaScriptEnabled: false });
    await page.tap('#more-1');
    await page.locator('#lead-1').waitFor();
    await page.tap('.open:has-text("Apples") .handset-tap');
    await page.locator('article').waitFor();
    await page.tap('#save');
    await page.locator('#save:has-text("Saved")').waitFor();
    await page.tap('#back');
    await page.tap('#search');
    await page.fill('#words', 'harbour');
    await page.tap('button:has-text("Find")');
    await eventually(() => page.locator('.story').count()).toBe(2);
    expect(exchanges.filter((e) => e.kind === 'round trip')).toHaveLength(6);
    expect(exchanges.filter((e) => e.kind === 'local')).toHaveLength(0);
  });

  it('shows in its preview what was local, what cost a round trip, and how many bytes', async () => {
    const { proxy } = await proxied(newsCopy());
    const page = await browser().newPage({ viewport: { width: 1000, height: 520 } });
    onTestFinished(() => page.close());
    await page.goto(`${proxy.url}/preview`);
    const frame = page.frameLocator('#phone');
    await frame.locator('#more-1').click();
    await frame.locator('.open:has-text("Apples")').click();
    await frame.locator('article').waitFor();
    await page.locator('tr.trip').waitFor();
    expect(await page.locator('#locals').textContent()).toBe('1');
    expect(await page.locator('#trips').textContent()).toBe('1');
    expect(await page.locator('tr.local').textContent()).toMatch(/localclickhandset\.toggle.*0 B0 B0 ms/);
    expect(await page.locator('tr.trip').textContent()).toMatch(/round tripclick.*Apples.*\d B\d+\.\d KB\d+ ms/);
  });

  it('logs every interaction on the command line', async () => {
    const running = startHandset(newsCopy(), ['proxy', '--port', '0', '--json']);
    const [, url = ''] = await running.output(/"url":"(http:[^"]+)"/);
    const page = await browser().newPage();
    onTestFinished(() => page.close());
    await page.goto(url);
    await page.click('#search');
    const [line] = await running.output(/\{"event":"exchange","kind":"round trip".*\}/);
    expect(JSON.parse(line)).toMatchObject({
      type: 'click',
      label: '<a #search> Search',
      bytesDown: expect.any(Number),
    });
    expect((await page.goto(`${url}/preview`))?.status()).toBe(404);
    expect((await running.stop()).status).toBe(0);
  });
});

describe('handset proxy, while sources are saved', () => {
  it('shows what was saved, to open previews at once and to phones with their next request', async () => {
    const root = app('p#text before\nbutton#go go', 'document.getElementById("go").onclick = function () {};');
    const running = startHandset(root, ['proxy', '--preview', '--port', '0', '--json']);
    const [, url = ''] = await running.output(/"url":"([^"]+)"/);
    const shell = await browser().newPage();
    const page = await browser().newPage();
    onTestFinished(() => Promise.all([shell.close(), page.close()]).then(() => undefined));
    await shell.goto(`${url}/preview`);
    await page.goto(url);
    const phone = shell.frameLocator('#phone');
    await phone.locator('#text:text-is("before")').waitFor();
    await page.locator('#text:text-is("before")').waitFor();
    const visit = page.url();
    write(root, { 'app/index.pug': text(root, 'app/index.pug').replace('before', 'after') });
    await phone.locator('#text:text-is("after")').waitFor();
    await page.click('#go');
    await page.locator('#text:text-is("after")').waitFor();
    expect(page.url()).toBe(visit);
    // What does not build leaves the last good application where it is.
    write(root, { 'app/main.js': 'var = ;' });
    await running.output(/"event":"build","written":\[\],"removed":\[\],"ok":false|"ok":false/);
    await page.reload();
    await page.locator('#text:text-is("after")').waitFor();
  });

  it('is one command with the plain preview: both follow a save', async () => {
    const root = app('p#text before', '');
    const running = startHandset(root, ['watch', '--server', '--proxy', '--port', '0', '--json']);
    const [, proxy = ''] = await running.output(/"event":"serving"[^\n]*"url":"([^"]+)"/);
    const [, plain = ''] = await running.output(/"event":"watching"[^\n]*"url":"([^"]+)"/);
    const pages = await Promise.all(
      [plain, `${proxy}/preview`].map(async (url) => {
        const page = await browser().newPage();
        onTestFinished(() => page.close());
        await page.goto(url);
        return page;
      }),
    );
    const texts = (word: string) =>
      Promise.all([
        pages[0]?.locator(`#text:text-is("${word}")`).waitFor(),
        pages[1]?.frameLocator('#phone').locator(`#text:text-is("${word}")`).waitFor(),
      ]);
    await texts('before');
    write(root, { 'app/index.pug': text(root, 'app/index.pug').replace('before', 'after') });
    await texts('after');
  });

  it('is at the port beside that of `--port`', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const { port } = other.address() as AddressInfo;
    const { status, stderr } = await startHandset(app('p a', ''), ['watch', '--proxy', '--port', String(port - 1)])
      .ended;
    expect([status, stderr]).toEqual([1, expect.stringContaining(`Port ${port} is in use`)]);
  });

  it('ends a visit whose tab was closed', async () => {
    const { phone, proxy } = await proxied(app('p#text here', ''));
    const page = await phone();
    expect(proxy.visitCount).toBe(1);
    await page.close({ runBeforeUnload: true });
    await eventually(() => proxy.visitCount).toBe(0);
  });
});

describe('a live page', () => {
  it('keeps its state for the visit, and one visit knows nothing of another', async () => {
    const root = app(
      'p#n 0\nbutton#add add',
      'var n = 0; document.getElementById("add").onclick = function () { document.getElementById("n").textContent = ++n; };',
    );
    const { phone } = await proxied(root);
    const [one, other] = [await phone(), await phone()];
    for (const count of ['1', '2', '3']) {
      await one.tap('#add');
      await eventually(() => one.locator('#n').textContent()).toBe(count);
    }
    await other.tap('#add');
    await eventually(() => other.locator('#n').textContent()).toBe('1');
    await one.goto(one.url().replace('/event', ''));
    expect(await one.locator('#n').textContent()).toBe('3');
  });

  it('waits for what a page does after an event', async () => {
    const script = `document.getElementById('go').addEventListener('click', function () {
      setTimeout(function () { fetch('config.xml').then(function (r) { return r.text(); }).then(function (t) {
        document.getElementById('out').textContent = 'got ' + (t.length > 10);
      }); }, 100);
    });`;
    const { phone } = await proxied(app('p#out waiting\nbutton#go go', script));
    const page = await phone();
    await page.tap('#go');
    await page.getByText('got true').waitFor();
  });

  it('carries fields of every kind, keys, swipes and long presses', async () => {
    const body = `input#t(type='text')\ninput#c(type='checkbox')\ninput#r1(type='radio' name='r' value='a' checked)\ninput#r2(type='radio' name='r' value='b')\nselect#s\n  option one\n  option two\ntextarea#a\np#pad(style='height:80px;background:#eee') pad\nbutton#go go\np#out`;
    const script = `function id(name) { return document.getElementById(name); }
    function say(text) { id('out').textContent = text; }
    id('go').onclick = function () { say([id('t').value, id('c').checked, id('r2').checked, id('s').value, id('a').value].join('|')); };
    document.addEventListener('keydown', function (event) { say('key ' + event.keyCode); });
    handset.onSwipe('#pad', 'left', function () { say('swiped'); });
    handset.onLongPress('#pad', function () { say('pressed'); });`;
    const { phone } = await proxied(app(body, script));
    const page = await phone();
    await page.fill('#t', 'a "quoted" <text> & ü');
    await page.check('#c');
    await page.check('#r2');
    await page.selectOption('#s', { label: 'two' });
    await page.fill('#a', 'line one\nline two');
    await page.tap('#go');
    await eventually(() => page.locator('#out').textContent()).toBe(
      'a "quoted" <text> & ü|true|true|two|line one\nline two',
    );
    expect(await page.inputValue('#t')).toBe('a "quoted" <text> & ü');
    await page.locator('body').press('ArrowUp');
    await page.getByText('key 38').waitFor();
    const box = await page.locator('#pad').boundingBox();
    const cdp = await page.context().newCDPSession(page);
    const touch = (type: 'touchStart' | 'touchEnd', x: number) =>
      cdp.send('Input.dispatchTouchEvent', {
        type,
        touchPoints: type === 'touchEnd' ? [] : [{ x, y: (box?.y ?? 0) + 20 }],
      });
    await touch('touchStart', 150);
    await cdp.send('Input.dispatchTouchEvent', { type: 'touchMove', touchPoints: [{ x: 60, y: (box?.y ?? 0) + 20 }] });
    await touch('touchEnd', 60);
    await page.getByText('swiped').waitFor();
    await touch('touchStart', 100);
    await page.getByText('pressed').waitFor();
    await touch('touchEnd', 100);
  });

  it('may load itself anew and go to itself, and going back from its first document leads nowhere', async () => {
    const body = `p#out -\nbutton#reload reload\nbutton#go go\nbutton#replace replace\nbutton#back back\nbutton#n n`;
    const script = `function id(name) { return document.getElementById(name); }
    sessionStorage.loads = Number(sessionStorage.loads || 0) + 1;
    id('out').textContent = sessionStorage.loads + location.search;
    id('reload').onclick = function () { location.reload(); };
    id('go').onclick = function () { location.href = 'index.html?page=2'; };
    id('replace').onclick = function () { location.replace('/'); };
    id('back').onclick = function () { history.back(); };
    id('n').onclick = function () { id('out').textContent += ' touched'; };`;
    const { phone, exchanges } = await proxied(app(body, script));
    const page = await phone();
    const out = () => page.locator('#out').textContent();
    await page.tap('#back');
    await eventually(() => exchanges.length).toBe(2);
    await page.tap('#reload');
    await eventually(out).toBe('2');
    await page.tap('#go');
    await eventually(out).toBe('3?page=2');
    await page.tap('#back');
    await eventually(out).toBe('4');
    await page.tap('#replace');
    await eventually(out).toBe('5');
    await page.tap('#n');
    await eventually(out).toBe('5 touched');
    expect(exchanges.filter((e) => e.kind === 'failed')).toEqual([]);
  });

  it('gives no event to a document that the phone was not shown', async () => {
    const script = `document.getElementById('go').onclick = function () { document.getElementById('out').textContent = 'pressed'; };
    document.getElementById('out').textContent = sessionStorage.again ? 'anew' : 'first';
    sessionStorage.again = 1;`;
    const { phone } = await proxied(app('p#out\nbutton#go go', script));
    const page = await phone();
    await livePage().reload();
    await page.tap('#go');
    await eventually(() => page.locator('#out').textContent()).toBe('anew');
    await page.tap('#go');
    await eventually(() => page.locator('#out').textContent()).toBe('pressed');
  });

  it('that fails says so with a way back, on the phone and in the log', async () => {
    const script = `document.getElementById('go').onclick = function () {
      document.getElementById('out').textContent = new Array(2000010).join('x');
    };`;
    const { phone, exchanges } = await proxied(app('p#out\nbutton#go go', script));
    const page = await phone();
    await page.tap('#go');
    await page.getByText('is the limit').waitFor();
    const last = exchanges.at(-1);
    expect(last).toMatchObject({ kind: 'failed', label: expect.stringMatching(/^The page has grown to \d+/) });
    expect(await page.locator('a').first().getAttribute('href')).toBe(`/v/${last?.visit}`);
  });

  it.each([true, false])('repeats nothing on Back and Reload (script on the phone: %s)', async (javaScriptEnabled) => {
    const script = `var n = 0; document.getElementById('go').onclick = function () { document.getElementById('out').textContent = ++n; };`;
    const { phone, exchanges } = await proxied(app('p#out 0\nbutton#go go', script));
    const page = await phone({ javaScriptEnabled });
    const out = () => page.locator('#out').textContent();
    const trips = () => exchanges.filter((e) => e.kind === 'round trip').length;
    for (const count of ['1', '2']) {
      await page.tap('#go');
      await eventually(out).toBe(count);
    }
    await page.reload();
    expect([await out(), trips()]).toEqual(['2', 2]);
    await page.goBack();
    if (page.url().includes('/v/')) expect(await out()).toBe('2');
    expect(trips()).toBe(2);
    expect(exchanges.filter((e) => e.kind === 'first load')).toHaveLength(1);
  });

  it('is waited for while it loads, longer than for anything else', async () => {
    const far = createServer((_request, response) => {
      response.setHeader('access-control-allow-origin', '*');
      setTimeout(() => response.end('late news'), 2_300);
    });
    await new Promise<void>((resolve) => far.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void far.close());
    const address = `http://127.0.0.1:${(far.address() as { port: number }).port}`;
    const script = `document.getElementById('go').onclick = function () {
      fetch('${address}/').then(function (r) { return r.text(); }).then(function (t) { document.getElementById('out').textContent = t; });
    };`;
    const { phone } = await proxied(app('p#out\nbutton#go go', script, `<access origin="${address}"/>`));
    const page = await phone();
    await page.tap('#go');
    await page.getByText('late news').waitFor();
  });

  it('is not waited for because of a timer that sets itself again for ever', async () => {
    const script = `var n = 0; (function tick() { document.getElementById('out').textContent = ++n; setTimeout(tick, 200); })();`;
    const { phone } = await proxied(app('p#out', script));
    await phone();
    await livePage().evaluate('__handsetAgent.settle(40, 600000, 600000)');
  });

  it('says what it says to its reader, once, and what its scripts threw', async () => {
    const errors: string[] = [];
    const script = `document.getElementById('go').onclick = function () { alert('a <b>\\nc'); wrong(); };`;
    const { phone } = await proxied(app('p#out\nbutton#go go', script), { onPageError: (text) => errors.push(text) });
    const page = await phone();
    const said = new Promise((resolve) => {
      page.once('dialog', (dialog) => {
        resolve(dialog.message());
        void dialog.dismiss();
      });
    });
    await page.tap('#go');
    expect(await said).toBe('a <b>\nc');
    expect(errors).toEqual(['wrong is not defined']);
    expect(await (await page.request.get(page.url())).text()).not.toContain('a &lt;b');
    const plain = await phone({ javaScriptEnabled: false });
    await plain.tap('#go');
    await eventually(() => plain.locator('[role=alert]').textContent()).toBe('a <b>\nc');
  });

  it.each([true, false])('takes ticks and choices away again (script on the phone: %s)', async (javaScriptEnabled) => {
    const body = `p#out\ninput#night(type='checkbox' checked)\nform#f\n  input#sound(type='checkbox' checked)\n  select#days(multiple)\n    option(selected) mon\n    option tue\n    option wed\n  fieldset(disabled)\n    input#fixed(type='checkbox' checked)\n  button#save save\nbutton#show show`;
    const script = `function id(name) { return document.getElementById(name); }
    var said = [];
    id('night').onchange = function () { said.push('night ' + this.checked); show(); };
    function show() {
      var days = [].filter.call(id('days').options, function (o) { return o.selected; }).map(function (o) { return o.text; });
      id('out').textContent = said.concat(['sound ' + id('sound').checked, 'fixed ' + id('fixed').checked], days).join(', ');
    }
    id('show').onclick = show;
    id('f').onsubmit = show;`;
    const { phone } = await proxied(app(body, script));
    const page = await phone({ javaScriptEnabled });
    const out = () => page.locator('#out').textContent();
    await page.tap('#show');
    await eventually(out).toBe('sound true, fixed true, mon');
    await page.selectOption('#days', ['mon', 'wed']);
    await page.uncheck('#sound');
    await page.tap('#save');
    await eventually(out).toBe('sound false, fixed true, mon, wed');
    expect(await page.locator('#days option').evaluateAll((all) => all.map((o) => Reflect.get(o, 'selected')))).toEqual(
      [true, false, true],
    );
    await page.selectOption('#days', []);
    await page.check('#sound');
    await page.tap('#save');
    await eventually(out).toBe('sound true, fixed true');
    // One that has a listener tells it by itself, where it can.
    await page.uncheck('#night', { force: true });
    if (!javaScriptEnabled) await page.tap('#show');
    await eventually(out).toBe('night false, sound true, fixed true');
    expect(await page.isChecked('#night')).toBe(false);
  });

  it('presses no button when Enter is typed in a field outside of a form', async () => {
    const body = `p#out -\nbutton#all Delete everything\ninput#t(type='text')\ninput#s(type='text')\nbutton#show show`;
    const script = `function id(name) { return document.getElementById(name); }
    function say(text) { id('out').textContent = text; }
    id('all').onclick = function () { say('deleted'); };
    id('s').onkeydown = function (event) { if (event.keyCode === 13) say('looks for ' + this.value); };
    id('show').onclick = function () { say('typed ' + id('t').value); };`;
    const { phone, exchanges } = await proxied(app(body, script));
    const out = (page: Page) => page.locator('#out').textContent();
    for (const javaScriptEnabled of [true, false]) {
      const page = await phone({ javaScriptEnabled });
      await page.fill('#t', 'cats');
      await page.press('#t', 'Enter');
      await page.tap('#show');
      await eventually(() => out(page)).toBe('typed cats');
    }
    expect(exchanges.filter((e) => e.kind === 'round trip')).toHaveLength(2);
    // Where the page listens for it, it is told.
    const page = await phone();
    await page.fill('#s', 'dogs');
    await page.press('#s', 'Enter');
    await eventually(() => out(page)).toBe('looks for dogs');
  });

  it('gives a tap on a box or a radio button to the page that listens for it, once', async () => {
    const body = `p#out\ninput#a(type='checkbox')\ndiv#list\n  label\n    input#b(type='checkbox')\n    span#text b\n  input#r(type='radio' name='r')`;
    const script = `function id(name) { return document.getElementById(name); }
    var said = [];
    function say(event) { if (event.target.type) { said.push(event.target.id + ' ' + event.target.checked); id('out').textContent = said.join(', '); } }
    id('a').addEventListener('click', say);
    id('list').addEventListener('click', say);`;
    const { phone } = await proxied(app(body, script));
    const page = await phone();
    const out = () => page.locator('#out').textContent();
    await page.tap('#a');
    await eventually(out).toBe('a true');
    expect(await page.isChecked('#a')).toBe(true);
    await page.tap('#a');
    await eventually(out).toBe('a true, a false');
    await page.tap('#text');
    await eventually(out).toBe('a true, a false, b true');
    expect(await page.isChecked('#b')).toBe(true);
    await page.tap('#r');
    await eventually(out).toBe('a true, a false, b true, r true');
  });

  it('takes a shortcut of the phone for what it is: the next document has it', async () => {
    const { phone, exchanges } = await proxied(
      app(
        `p#box.off box\na(href='#' onclick="handset.switchClass('#box', 'on', 'off')") switch\nbutton#go go`,
        'document.getElementById("go").onclick = function () {};',
      ),
    );
    const page = await phone();
    await page.tap('text=switch');
    await page.locator('#box.on').waitFor();
    await page.tap('#go');
    await eventually(() => exchanges.filter((e) => e.kind === 'round trip').length).toBe(1);
    await page.waitForLoadState();
    expect(await page.locator('#box').getAttribute('class')).toBe('on');
  });

  it('leaves repeated timers to the phone', async () => {
    const { phone, exchanges } = await proxied(
      app('p#box off', `handset.timer('blink', 50, "handset.addClass('#box', 'on')", true);`),
    );
    const page = await phone();
    const html = await (await page.request.get(page.url())).text();
    expect(html).not.toContain('class="on"');
    await page.locator('#box.on').waitFor();
    expect(exchanges.filter((e) => e.kind === 'round trip')).toEqual([]);
  });

  it.each([true, false])(
    'takes a javascript: address for an event (script on the phone: %s)',
    async (javaScriptEnabled) => {
      const body = `p#seen none
a#run(href='javascript:add(%22one%22)') run
a#text(href='javascript:add("two"); "a new document"') text
a#own(href='javascript:add("never")' onclick='add("own"); return false') own
a#nothing(href='javascript:void(0)') nothing
a#local(href='javascript:handset.addClass("#seen", "marked")') local`;
      const script = `function add(word) { var seen = document.getElementById('seen'); seen.textContent += ' ' + word; }`;
      const { phone, exchanges } = await proxied(app(body, script));
      const page = await phone({ javaScriptEnabled });
      for (const [id, seen] of [
        ['run', 'none one'],
        ['text', 'none one two'],
        ['own', 'none one two own'],
      ] as const) {
        await page.tap(`#${id}`);
        await page.locator(`#seen:text-is("${seen}")`).waitFor();
      }
      expect(await page.locator('#nothing').getAttribute('href')).toBeNull();
      const trips = () => exchanges.filter(({ kind }) => kind === 'round trip').length;
      expect(trips()).toBe(3);
      await page.tap('#local');
      await page.locator('#seen.marked').waitFor();
      expect(trips()).toBe(javaScriptEnabled ? 3 : 4);
    },
  );

  it('works where the page has replaced what its browser brings', async () => {
    const script = `String.prototype.replace = function () { throw new Error('replaced'); };
      window.Promise = function () { throw new Error('promised'); };
      document.getElementById('go').onclick = function () { this.textContent = '<went>'; };`;
    const { phone } = await proxied(app('button#go go', script));
    const page = await phone();
    await page.tap('#go');
    await page.locator('#go:text-is("<went>")').waitFor();
  });

  it('writes text as text', async () => {
    const { phone } = await proxied(
      app(
        'p#out',
        `document.getElementById('out').textContent = '<script>hacked=1</script><img src=x onerror=hacked=1>"';`,
      ),
    );
    const page = await phone();
    expect(await page.locator('#out').textContent()).toContain('<script>hacked=1</script>');
    expect(await page.locator('img').count()).toBe(0);
    expect(await page.evaluate('"hacked" in window')).toBe(false);
  });
});
