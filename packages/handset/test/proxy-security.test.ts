import { createSocket } from 'node:dgram';
import { readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { launchChromium } from '../src/browser/launch.ts';
import { createAssembler } from '../src/build/assembler.ts';
import { DEVICES } from '../src/preview/devices.ts';
import { openProject } from '../src/project/project.ts';
import { LIVE_PAGE_ARGS } from '../src/proxy/live-page.ts';
import { type ProxyOptions, startProxy } from '../src/proxy/proxy-server.ts';
import { useChromium } from './support/chromium.ts';
import { handset } from './support/cli.ts';
import { eventually } from './support/news.ts';
import { smallProject } from './support/project.ts';

// As `handset proxy` starts it: what keeps a page in must not be the browser's own rules.
const { browser } = useChromium(false, LIVE_PAGE_ARGS);
const LIBRARY = readFileSync(new URL('../client/handset.js', import.meta.url), 'utf8');

async function proxied(script: string, { config = '', ...options }: Partial<ProxyOptions> & { config?: string } = {}) {
  const root = smallProject({
    'app/assets/config.xml': `<widget xmlns="http://www.w3.org/ns/widgets"><name>small</name>${config}</widget>`,
    'app/index.pug': `doctype html\nhtml\n  head\n    title app\n  body\n    p#out\n    button#go(onclick="handset.insertHTML('#out', 'offered')") go\n    script(src='javascripts/vendor.js')\n    script(src='javascripts/app.js')\n`,
    'app/main.js': script,
    'vendor/handset.js': LIBRARY,
  });
  const { settings, plugins } = await openProject(root);
  const { outputs } = await createAssembler({ root, settings, plugins, production: false }).assemble();
  const refused: string[] = [];
  const proxy = await startProxy({
    browser: browser(),
    outputs: () => outputs ?? new Map(),
    device: DEVICES.touch,
    host: 'localhost',
    port: 0,
    preview: false,
    visits: 2,
    idle: 60_000,
    onExchange: () => undefined,
    onPageError: () => undefined,
    onRefused: (url) => refused.push(url),
    ...options,
  });
  onTestFinished(() => proxy.close());
  const begin = async () => {
    const response = await fetch(proxy.url, { redirect: 'manual' });
    return { status: response.status, url: proxy.url + (response.headers.get('location') ?? '') };
  };
  const post = (url: string, body: string) =>
    fetch(`${url}/event`, { method: 'POST', body, headers: { 'content-type': 'application/x-www-form-urlencoded' } });
  return { proxy, refused, begin, post };
}

describe('the proxy', () => {
  it('replays only shortcuts that its document offered', async () => {
    const { begin, post } = await proxied('');
    const { url } = await begin();
    const html = await (await fetch(url)).text();
    expect(html).toContain("handset.insertHTML('#out', 'offered')");
    // The channel is open: an offered shortcut is replayed.
    const offered = await (
      await post(url, `on=0:key-up&local=${encodeURIComponent("handset.insertHTML('#out', 'offered')")}`)
    ).text();
    expect(offered).toMatch(/<p id="out"[^>]*>offered</);
    const foreign = await (
      await post(url, `on=0:key-up&local=${encodeURIComponent("handset.insertHTML('#out', '<b>foreign</b>')")}`)
    ).text();
    expect(foreign).not.toContain('<b>');
    expect(foreign).toMatch(/<p id="out"[^>]*>offered</);
  });

  it('runs no script on the phone but its own', async () => {
    const { begin } = await proxied('document.title = "live"');
    const { url } = await begin();
    const response = await fetch(url);
    const policy = response.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain("script-src 'unsafe-inline'");
    const page = await browser().newPage();
    onTestFinished(() => page.close());
    const add = `const s = document.createElement('script'); s.textContent = 'hacked = 1'; document.body.append(s); 'hacked' in window`;
    await page.goto(`data:text/html,<body>`);
    expect(await page.evaluate(add)).toBe(true);
    await page.goto(url);
    expect(await page.evaluate('typeof handset.show')).toBe('function');
    expect(await page.evaluate(add)).toBe(false);
  });

  it('lets a live page reach nothing that config.xml does not name', async () => {
    const inside = createServer((_q, response) =>
      response.writeHead(200, { 'access-control-allow-origin': '*' }).end('INSIDE'),
    );
    await new Promise<void>((resolve) => inside.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void inside.close());
    const address = `http://127.0.0.1:${(inside.address() as { port: number }).port}`;
    const script = `var out = document.getElementById('out');
      fetch('${address}/').then(function (r) { return r.text(); }).then(function (t) { out.textContent = t; }, function () { out.textContent = 'refused'; });`;
    const show = async (config: string) => {
      const { begin, refused } = await proxied(script, { config });
      const html = await (await fetch((await begin()).url)).text();
      return [/<p id="out"[^>]*>([^<]*)</.exec(html)?.[1], refused.length > 0];
    };
    // The channel is open: what config.xml names is reached. "*" means the public network, not this machine.
    expect(await show(`<access origin="${address}"/>`)).toEqual(['INSIDE', false]);
    expect(await show('')).toEqual(['refused', true]);
    expect(await show('<access origin="*"/>')).toEqual(['refused', true]);
    expect(await show('<access origin="http://127.0.0.1:1"/>')).toEqual(['refused', true]);
  });

  it('lets a live page reach nothing by a redirect or from a worker either', async () => {
    const cors = { 'access-control-allow-origin': '*' };
    const serve = async (listener: Parameters<typeof createServer>[1]): Promise<string> => {
      const server = createServer(listener);
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void server.close());
      return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
    };
    let reached = 0;
    const inside = await serve((_q, response) => {
      reached += 1;
      response.writeHead(200, cors).end('INSIDE');
    });
    const outside = await serve(({ url }, response) =>
      response.writeHead(302, { ...cors, location: url === '/in' ? `${inside}/` : '/in' }).end(),
    );
    const show = async (script: string, config: string) => {
      reached = 0;
      const { begin } = await proxied(
        `var out = document.getElementById('out'); function say(t) { out.textContent = t; } ${script}`,
        { config },
      );
      const html = await (await fetch((await begin()).url)).text();
      return [/<p id="out"[^>]*>([^<]*)</.exec(html)?.[1], reached > 0];
    };
    const access = (origin: string) => `<access origin="${origin}"/>`;
    const redirected = `fetch('${outside}/').then(function (r) { return r.text(); }).then(say, function () { say('refused'); });`;
    // The channel is open: a redirect to what config.xml names is followed.
    expect(await show(redirected, access(outside) + access(inside))).toEqual(['INSIDE', true]);
    expect(await show(redirected, access(outside))).toEqual(['refused', false]);
    const worker = (address: string) => `
      var code = "new WebSocket('${address.replace('http', 'ws')}/'); fetch('${address}/').then(function (r) { return r.text(); }).then(postMessage, function () { postMessage('refused'); });";
      try {
        var w = new Worker(URL.createObjectURL(new Blob([code])));
        w.onmessage = function (e) { say(e.data); }; w.onerror = function () { say('no worker'); };
      } catch (e) { say('no worker'); }
      setTimeout(function () {}, 300);`;
    expect(await show(worker(inside), '')).toEqual(['no worker', false]);
  });

  it('lets a live page reach nothing of this network by a public name that points into it', async () => {
    let reached = 0;
    const inside = createServer((_q, response) => {
      reached += 1;
      response.writeHead(200, { 'access-control-allow-origin': '*' }).end('INSIDE');
    });
    inside.on('upgrade', (_q, socket) => {
      reached += 1;
      socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    });
    await new Promise<void>((resolve) => inside.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void inside.close());
    const { port } = inside.address() as { port: number };
    const resolved: string[] = [];
    const resolve = (name: string) => {
      resolved.push(name);
      return Promise.resolve(['127.0.0.1']);
    };
    const show = async (script: string, config: string) => {
      [reached, resolved.length] = [0, 0];
      const { begin, refused } = await proxied(
        `var out = document.getElementById('out'); function say(t) { out.textContent = t; } ${script}`,
        { config, resolve },
      );
      const html = await (await fetch((await begin()).url)).text();
      return [/<p id="out"[^>]*>([^<]*)</.exec(html)?.[1], reached > 0, refused.length > 0];
    };
    const access = (origin: string) => `<access origin="${origin}"/>`;
    const name = `http://news.example:${port}`;
    const get = `fetch('${name}/').then(function (r) { return r.text(); }).then(say, function () { say('refused'); });`;
    // The channel is open: the name resolves and is reached where config.xml names what it points to.
    expect(await show(get, access(name) + access(`http://127.0.0.1:${port}`))).toEqual(['INSIDE', true, false]);
    expect(resolved).toEqual(['news.example']);
    expect(await show(get, access(name))).toEqual(['refused', false, true]);
    expect(await show(get, access('*'))).toEqual(['refused', false, true]);
    // Encrypted traffic and sockets pass by a tunnel.
    const secure = get.replace('http:', 'https:');
    expect(await show(secure, access(name.replace('http:', 'https:')))).toEqual(['refused', false, true]);
    const socket = async (config: string) => {
      reached = 0;
      const { begin, refused } = await proxied(`new WebSocket('ws://news.example:${port}/');`, { config, resolve });
      await begin();
      await eventually(() => reached + refused.length).toBeGreaterThan(0);
      return [reached > 0, refused.length > 0];
    };
    expect(await socket(access(name) + access(`http://127.0.0.1:${port}`))).toEqual([true, false]);
    expect(await socket(access(name))).toEqual([false, true]);
  });

  it('lets a live page read no file of this machine', async () => {
    const file = pathToFileURL(path.join(smallProject({ 'secret.html': 'SECRET' }), 'secret.html')).href;
    // The channel is open: this browser reads the file where it is asked to.
    const page = await browser().newPage();
    onTestFinished(() => page.close());
    await page.goto(file);
    expect(await page.textContent('body')).toContain('SECRET');
    const { begin, post } = await proxied(`
      var out = document.getElementById('out'), said = [], left = 3;
      function say(how, text) { said.push(how + ':' + (/SECRET/.test(text) ? 'SECRET' : 'nothing')); if (!--left) out.textContent = said.sort().join(' '); }
      fetch('${file}').then(function (r) { return r.text(); }).then(function (t) { say('fetch', t); }, function () { say('fetch', ''); });
      var x = new XMLHttpRequest();
      x.onloadend = function () { say('xhr', String(x.responseText)); };
      try { x.open('GET', '${file}'); x.send(); } catch (e) { say('xhr', ''); }
      var f = document.createElement('iframe');
      f.src = '${file}';
      document.body.appendChild(f);
      setTimeout(function () { var t = ''; try { t = f.contentDocument.body.textContent; } catch (e) {} say('frame', t); }, 300);
      try { window.open('${file}'); } catch (e) {}
      document.getElementById('go').addEventListener('click', function () { location.href = '${file}'; });`);
    const { url } = await begin();
    const html = await (await fetch(url)).text();
    expect(/<p id="out"[^>]*>([^<]*)</.exec(html)?.[1]).toBe('fetch:nothing frame:nothing xhr:nothing');
    // Who goes there is gone.
    const n = /<button[^>]* data-n="(\d+)"/.exec(html)?.[1];
    expect(await (await post(url, `on=${n}:click`)).text()).not.toContain('SECRET');
    await eventually(async () => (await fetch(url)).status).toBe(410);
  });

  it('lets no datagram of a live page out', async () => {
    const inside = createSocket('udp4');
    let datagrams = 0;
    inside.on('message', () => {
      datagrams += 1;
    });
    await new Promise<void>((done) => inside.bind(0, '127.0.0.1', done));
    onTestFinished(() => void inside.close());
    const script = `var c = new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:${inside.address().port}' }] });
      c.createDataChannel('a'); c.createOffer().then(function (o) { return c.setLocalDescription(o); });
      c.onicegatheringstatechange = function () { if (c.iceGatheringState === 'complete') document.title = 'gathered'; };
      setTimeout(function () { document.title = 'late'; }, 1500);`;
    const send = async (from: Browser): Promise<Page> => {
      const page = await from.newPage();
      await page.setContent('<p>');
      await page.evaluate(script);
      await page.waitForFunction('document.title !== ""');
      return page;
    };
    // The channel is open in a browser that was started without the rule.
    const open = await launchChromium({ headless: true, webSecurity: false, env: process.env });
    try {
      await send(open);
      await eventually(() => datagrams).toBeGreaterThan(0);
    } finally {
      await open.close();
    }
    datagrams = 0;
    await (await send(browser())).close();
    expect(datagrams).toBe(0);
  });

  it('is given nothing to refuse by the browser itself', async () => {
    const { begin, refused } = await proxied(
      `document.getElementById('out').innerHTML = '<form><input name=name><input type=email name=email><input name=zip></form>';`,
    );
    await (await fetch((await begin()).url)).text();
    await begin();
    expect(refused).toEqual([]);
    const told = await launchChromium({
      headless: true,
      webSecurity: false,
      env: process.env,
      args: ['--enable-automation'],
    });
    onTestFinished(() => told.close());
    const session = await told.newBrowserCDPSession();
    const { arguments: given } = await session.send('Browser.getBrowserCommandLine');
    const [theirs, ours] = given
      .filter((argument) => argument.startsWith('--disable-features='))
      .map((argument) => argument.split('=')[1]?.split(','));
    // The last list alone counts.
    expect(ours).toEqual(expect.arrayContaining(theirs ?? ['a list of Playwright']));
  });

  it('stays on its one document', async () => {
    const { begin, refused } = await proxied(
      'setTimeout(function () { location.href = "http://elsewhere.invalid/"; }, 0); window.open("http://popup.invalid/");',
    );
    const html = await (await fetch((await begin()).url)).text();
    expect(html).toContain('<title>app</title>');
    expect(refused).toContain('http://elsewhere.invalid/');
  });

  it('limits visits, and makes room when one has been idle', async () => {
    let now = 0;
    const { begin, post, proxy } = await proxied('', { visits: 2, idle: 600_000, now: () => now });
    const used = async () => {
      const visit = await begin();
      expect([visit.status, (await post(visit.url, 'on=0:key-up')).status]).toEqual([303, 200]);
      return visit;
    };
    const first = await used();
    now = 1_000;
    const second = await used();
    const full = await fetch(proxy.url);
    expect([full.status, await full.text()]).toEqual([503, expect.stringMatching(/All 2 visits are taken.*--visits/)]);
    now = 70_000;
    expect((await begin()).status).toBe(303);
    expect([(await fetch(first.url)).status, (await fetch(second.url)).status, proxy.visitCount]).toEqual([
      410, 200, 2,
    ]);
  });

  it('gives the place of a visit that was only looked at to the next: loading again and again never runs out', async () => {
    const { begin, post, proxy } = await proxied('', { visits: 2 });
    const kept = await begin();
    expect((await post(kept.url, 'on=0:key-up')).status).toBe(200);
    for (let i = 0; i < 5; i++) expect((await begin()).status).toBe(303);
    expect([(await fetch(kept.url)).status, proxy.visitCount]).toEqual([200, 2]);
  });

  it('ends a visit soon after its document was left, and not where it is loaded again', async () => {
    let now = 0;
    const { begin, post } = await proxied('', { now: () => now });
    const [gone, back] = [await begin(), await begin()];
    for (const { url } of [gone, back]) {
      await post(url, 'on=0:key-up');
      expect((await fetch(`${url}/leave`, { method: 'POST' })).status).toBe(204);
    }
    now = 1_000;
    expect((await fetch(back.url)).status).toBe(200);
    now = 20_000;
    expect([(await fetch(gone.url)).status, (await fetch(back.url)).status]).toEqual([410, 200]);
  });

  it('ends a page that takes too much memory, and no other', async () => {
    const errors: string[] = [];
    const greedy = `window.hold = []; document.getElementById('go').addEventListener('click', function () {
      setInterval(function () { hold.push(new Uint8Array(1 << 25).fill(1)); }, 20);
    });`;
    const { begin, post } = await proxied(greedy, { onPageError: (message) => errors.push(message) });
    const [other, { url }] = [await begin(), await begin()];
    const button = /<button[^>]*data-n="(\d+)"/.exec(await (await fetch(url)).text())?.[1];
    await post(url, `on=${button}:click`);
    await eventually(() => errors.join()).toMatch(/a page took \d+ MB and was ended; 512 MB is the limit/);
    await eventually(async () => (await fetch(url)).status).toBe(410);
    expect((await fetch(other.url)).status).toBe(200);
  });

  it('tells a visitor in plain words that the page went elsewhere', async () => {
    const failures: string[] = [];
    const { begin, post } = await proxied(
      `document.getElementById('go').addEventListener('click', function () { location = 'file:///etc/passwd'; });`,
      { onExchange: ({ kind, label }) => kind === 'failed' && failures.push(label) },
    );
    const { url } = await begin();
    const button = /<button[^>]*data-n="(\d+)"/.exec(await (await fetch(url)).text())?.[1];
    const answer = await post(url, `on=${button}:click`);
    const text = await answer.text();
    expect(text).not.toMatch(/page\.evaluate|Target|closed|passwd/);
    if (answer.status !== 200) expect(text).toMatch(/The page has ended: it left the application/);
    expect(failures.join()).not.toMatch(/page\.|Target/);
  });

  it('ends a visit that has been idle too long', async () => {
    let now = 0;
    const { begin } = await proxied('', { idle: 10_000, now: () => now });
    const { url } = await begin();
    expect((await fetch(url)).status).toBe(200);
    now = 10_001;
    expect((await fetch(url)).status).toBe(410);
  });

  it('bounds what a phone sends and refuses what is no event', async () => {
    const { begin, post, proxy } = await proxied('');
    const { url } = await begin();
    expect((await post(url, `on=0:key-up&f1=${'x'.repeat(1000)}`)).status).toBe(200);
    expect((await post(url, `on=0:key-up&f1=${'x'.repeat(70_000)}`)).status).toBe(413);
    for (const body of ['', 'on=', 'on=1', 'on=1:eval', 'on=a:click', 'on=1:click;2', 'on=99999999999:click']) {
      expect([body, (await post(url, body)).status]).toEqual([body, 400]);
    }
    expect((await post(url, 'on=999:click&f999=x&g1=constructor&y=-1&local=')).status).toBe(200);
    expect((await fetch(`${proxy.url}/v/${'0'.repeat(32)}`)).status).toBe(410);
    expect((await fetch(`${proxy.url}/v/../javascripts/app.js`)).status).toBe(404);
    expect((await fetch(`${proxy.url}/javascripts/app.js`)).status).toBe(404);
    expect((await fetch(`${proxy.url}//`)).status).toBe(400);
    expect((await fetch(proxy.url, { method: 'DELETE' })).status).toBe(405);
  });

  it('answers to no name but its own', async () => {
    const { proxy } = await proxied('');
    const status = (host: string): Promise<number | undefined> =>
      new Promise((resolve) => {
        request({ port: new URL(proxy.url).port, host: '127.0.0.1', path: '/v/x', headers: { host } }, (r) =>
          resolve(r.resume().statusCode),
        ).end();
      });
    expect([await status('localhost'), await status('evil.example')]).toEqual([404, 403]);
  });

  it('does not show the addresses of visits to the network', async () => {
    const [status, says] = await handset(smallProject(), ['proxy', '--preview', '--host', '0.0.0.0']).then((r) => [
      r.status,
      r.stderr,
    ]);
    expect(says).toContain('--preview shows the addresses of all visits');
    expect(status).toBe(2);
    // The channel is open where it stays: on this machine the feed names the visit.
    const { begin, proxy } = await proxied('', { preview: true });
    const { url } = await begin();
    const feed = await fetch(`${proxy.url}/preview/feed`);
    const reader = feed.body?.getReader();
    await (await fetch(url)).text();
    let text = '';
    while (reader && !text.includes('data:')) text += Buffer.from((await reader.read()).value ?? []).toString();
    await reader?.cancel();
    expect(text).toContain(url.split('/').pop());
  });

  it('ends a page that never answers, and the next visit works', async () => {
    const { begin, post } = await proxied(
      'document.getElementById("go").addEventListener("click", function () { for (;;) {} });',
    );
    const { url } = await begin();
    const html = await (await fetch(url)).text();
    const n = /<button[^>]* data-n="(\d+)"/.exec(html)?.[1];
    const before = browser().contexts().length;
    const stuck = await post(url, `on=${n}:click`);
    expect([stuck.status, await stuck.text()]).toEqual([500, expect.stringContaining('did not answer in 5 seconds.')]);
    expect((await fetch(url)).status).toBe(410);
    // Nothing goes on running: the page is gone from Chromium, not only from the list.
    await eventually(() => browser().contexts().length).toBe(before - 1);
    expect((await fetch((await begin()).url)).status).toBe(200);
  });
});
