import { type ChildProcess, execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  type BrowserAction,
  GetBrowserSessionCommand,
  InvokeBrowserCommand,
  ListBrowserSessionsCommand,
  StopBrowserSessionCommand,
  UpdateBrowserStreamCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateBrowserCommand,
  DeleteBrowserCommand,
  GetBrowserCommand,
  ListBrowsersCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentcoreInside } from '../../packages/cli/test/agentcore.ts';
import { type BrowserClient, browserSession } from '../../packages/sdk/src/browser/index.ts';
import { python } from '../support/boto3.ts';
import {
  type BrowserSession,
  BUILT_IN,
  handshakeHeaders,
  needChromium,
  presigned,
  RawCdp,
  startBrowserSession,
} from '../support/browser-session.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { newUser } from '../support/iam.ts';
import { npmPackage } from '../support/npm-package.ts';
import { OtherNetwork } from '../support/other-network.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const run = promisify(execFile);
const PUPPETEER = 'puppeteer-core@25.16.0';
const puppeteer = await npmPackage(PUPPETEER);
/** A private network that only exists on this machine, in a namespace of its own; a web server is in it. */
const NETWORK = { name: `br${process.pid}`, host: '172.30.95.1', inside: '172.30.95.2', port: 8099 };
const SUBNET = 'subnet-0123456789abcdef0';
let platform: TestPlatform;
let network: OtherNetwork;
let web: ChildProcess;
let clients: Clients;
let session: BrowserSession;

beforeAll(async () => {
  needChromium();
  network = await OtherNetwork.open(NETWORK);
  web = network.spawn('python3', '-m', 'http.server', String(NETWORK.port), '--directory', import.meta.dirname);
  platform = await startTestPlatform({
    env: { AGENTPLATFORM_BROWSER_WARM_SESSIONS: '0', AGENTPLATFORM_BROWSER_SUBNETS: `${SUBNET}=172.30.95.0/24` },
  });
  clients = clientsOf(platform);
  session = await startBrowserSession(clients);
}, 400_000);

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  if (web?.exitCode === null) {
    const gone = once(web, 'exit');
    web.kill('SIGKILL');
    await gone;
  }
  await network?.close();
});

const signed = (to = session) => handshakeHeaders(platform, to.automation);
const raw = async (to = session): Promise<RawCdp> => RawCdp.open(to.automation, await signed(to));
const playwright = async (): Promise<Browser> =>
  chromium.connectOverCDP(session.automation, { headers: await signed() });
const invoke = async (action: BrowserAction) => {
  const command = new InvokeBrowserCommand({ browserIdentifier: BUILT_IN, sessionId: session.id, action });
  return (await clients.data.send(command)).result;
};

describe('a handshake', () => {
  it('without a valid signature in its headers gets 403 and no socket; a presigned address is refused, too', async () => {
    const wrong = { ...platform.credentials, secretAccessKey: 'x'.repeat(40) };
    const [name = '', value = ''] = Object.entries(await signed()).find(([key]) => key === 'authorization') ?? [];
    for (const headers of [
      {},
      { authorization: 'AWS4-HMAC-SHA256 nonsense' },
      await handshakeHeaders(platform, session.automation, wrong),
      { ...(await signed()), [name]: value.replace(/Signature=./, 'Signature=g') },
    ])
      await expect(RawCdp.open(session.automation, headers)).rejects.toThrow(/status 40[03]/);
    await expect(RawCdp.open(session.automation, {})).rejects.toThrow('status 403');
    await expect(RawCdp.open(await presigned(platform, session.automation), {})).rejects.toThrow('status 403');
    const elsewhere = session.automation.replace(session.id, 'a'.repeat(32));
    await expect(RawCdp.open(elsewhere, await handshakeHeaders(platform, elsewhere))).rejects.toThrow('status 404');
    const open = await raw();
    expect((await open.send('Browser.getVersion')).product).toMatch(/Chrome\/\d+/);
    open.socket.close();
  });
});

describe('a session', () => {
  it('is nobody else’s: who may do everything with browsers, and did not start it, is told of none', async () => {
    const bob = await newUser(platform, 'bob', [{ Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource: '*' }]);
    const his = clientsOf(platform, { credentials: bob });
    const of = { browserIdentifier: BUILT_IN, sessionId: session.id };
    const none = { name: 'ResourceNotFoundException' };
    await expect(his.data.send(new GetBrowserSessionCommand(of))).rejects.toMatchObject(none);
    await expect(his.data.send(new StopBrowserSessionCommand(of))).rejects.toMatchObject(none);
    const action = { screenshot: {} };
    await expect(his.data.send(new InvokeBrowserCommand({ ...of, action }))).rejects.toMatchObject(none);
    expect((await his.data.send(new ListBrowserSessionsCommand({ browserIdentifier: BUILT_IN }))).items).toEqual([]);
    const headers = await handshakeHeaders(platform, session.automation, bob);
    await expect(RawCdp.open(session.automation, headers)).rejects.toThrow('status 404');
    his.close();
  });
});

describe('programs', () => {
  it('drive it by Playwright, at the size that was asked for', async () => {
    const browser = await playwright();
    const page = browser.contexts()[0]?.pages()[0] ?? (await browser.newPage());
    expect(browser.contexts().flatMap((context) => context.pages())).toHaveLength(1);
    expect(await page.evaluate('[innerWidth, innerHeight]')).toEqual([1456, 819]);
    await page.setContent('<form><input id="name"><button type="button">Greet</button><output></output></form>');
    await page.evaluate(
      'document.querySelector("button").onclick = () => { document.querySelector("output").value = "Hello, " + document.querySelector("#name").value; }',
    );
    await page.fill('#name', 'Ann');
    await page.click('text=Greet');
    expect(await page.textContent('output')).toBe('Hello, Ann');
    await browser.close();
  });

  it.skipIf(!puppeteer)('drive it by Puppeteer', async () => {
    const script = `
      import puppeteer from '${puppeteer}/node_modules/puppeteer-core/lib/puppeteer/puppeteer-core.js';
      const browser = await puppeteer.connect({ browserWSEndpoint: process.argv[1], headers: JSON.parse(process.argv[2]) });
      const page = await browser.newPage();
      await page.setContent('<title>by Puppeteer</title>');
      console.log(await page.title());
      await page.close();
      await browser.disconnect();`;
    const args = ['--input-type=module', '-e', script, session.automation, JSON.stringify(await signed())];
    expect((await run(process.execPath, args)).stdout.trim()).toBe('by Puppeteer');
  });

  it('drive it several at a time, with long messages both ways; one above 100 MB ends its connection with 1009', async () => {
    const [first, second] = await Promise.all([raw(), raw()]);
    const pages = await Promise.all([first.page(), second.page()]);
    const long = 30 * 2 ** 20;
    const expression = `'${'a'.repeat(long)}' + 'b'.repeat(${long})`;
    const [whole, other] = await Promise.all([
      first.send('Runtime.evaluate', { expression, returnByValue: true }, pages[0]),
      second.send('Runtime.evaluate', { expression: '6 * 7' }, pages[1]),
    ]);
    expect([whole.result.value.length, other.result.value]).toEqual([2 * long, 42]);
    first.socket.send(Buffer.alloc(100 * 2 ** 20 + 1, ' '), { binary: false });
    expect((await first.closed).code).toBe(1009);
    expect((await second.send('Browser.getVersion')).product).toMatch(/Chrome/);
    second.socket.close();
  });

  it('are cut off while a person has control, and let in again after', async () => {
    const update = (streamStatus: 'ENABLED' | 'DISABLED') =>
      clients.data.send(
        new UpdateBrowserStreamCommand({
          browserIdentifier: BUILT_IN,
          sessionId: session.id,
          streamUpdate: { automationStreamUpdate: { streamStatus } },
        }),
      );
    const before = await raw();
    expect((await update('DISABLED')).streams?.automationStream?.streamStatus).toBe('DISABLED');
    expect(await before.closed).toEqual({ code: 4001, reason: expect.stringContaining('a person has control') });
    await expect(raw()).rejects.toThrow('status 409');
    expect((await invoke({ mouseMove: { x: 1, y: 1 } }))?.mouseMove?.status).toBe('SUCCESS');
    await update('ENABLED');
    const after = await raw();
    expect((await after.send('Browser.getVersion')).product).toMatch(/Chrome/);
    after.socket.close();
  });
});

describe('what no page may reach', () => {
  it('are files, inner pages of the browser and the program that drives it', async () => {
    const cdp = await raw();
    const goTo = async (url: string) => {
      const { targetId } = await cdp.send('Target.createTarget', { url: 'about:blank' });
      const { sessionId } = await cdp.send('Target.attachToTarget', { targetId, flatten: true });
      const { errorText } = await cdp.send('Page.navigate', { url }, sessionId);
      await cdp.send('Target.closeTarget', { targetId });
      return errorText;
    };
    expect(await goTo('data:text/html,here')).toBeUndefined();
    for (const url of ['file:///etc/passwd', 'chrome://version', 'view-source:http://127.0.0.1:8080/ping'])
      expect(await goTo(url)).toBe('net::ERR_BLOCKED_BY_ADMINISTRATOR');
    // What answers the platform at that very port cuts off whoever comes from inside.
    expect(await goTo('http://127.0.0.1:8080/ping')).toMatch(
      /ERR_(EMPTY_RESPONSE|SOCKET_NOT_CONNECTED|CONNECTION_(CLOSED|RESET))/,
    );
    cdp.socket.close();
  });

  it('is the platform, whose port is closed by the network', async () => {
    const cdp = await raw();
    const sessionId = await cdp.page();
    const { port } = new URL(platform.ready.endpoint);
    const { errorText } = await cdp.send('Page.navigate', { url: `http://169.254.170.2:${port}/` }, sessionId);
    expect(errorText).toMatch(/^net::ERR_/);
    cdp.socket.close();
  });

  it('is a private network, but for the subnets that its browser names', async () => {
    const make = new CreateBrowserCommand({
      name: 'in_vpc',
      networkConfiguration: {
        networkMode: 'VPC',
        vpcConfig: { subnets: [SUBNET], securityGroups: ['sg-0123456789abcdef0'] },
      },
    });
    const { browserId = '' } = await clients.control.send(make);
    const inVpc = await startBrowserSession(clients, { browserIdentifier: browserId });
    const reach = async (from: BrowserSession, address: string) => {
      const cdp = await raw(from);
      const { errorText = 'reached' } = await cdp.send('Page.navigate', { url: address }, await cdp.page());
      cdp.socket.close();
      return errorText;
    };
    const there = `http://${NETWORK.inside}:${NETWORK.port}/`;
    // The control: the server answers a page where the network is open.
    await expect.poll(() => reach(inVpc, there), { timeout: 60_000 }).toBe('reached');
    expect(await reach(session, there)).toMatch(/^net::ERR_/);
    expect(await reach(inVpc, `http://169.254.170.2:${new URL(platform.ready.endpoint).port}/`)).toMatch(/^net::ERR_/);
    await clients.control.send(new DeleteBrowserCommand({ browserId }));
  });

  it('is kept apart by Chromium’s own sandbox, in namespaces inside those of the session', async () => {
    const renderers = await namespacesOf('--type=renderer');
    const sessions = await namespacesOf('/opt/browser/main.mjs');
    expect([renderers.size > 0, sessions.size > 0]).toEqual([true, true]);
    for (const renderer of renderers) expect(sessions).not.toContain(renderer);
  });
});

/** User namespaces of the processes in sandboxes of this machine that have this argument. */
async function namespacesOf(argument: string): Promise<Set<string>> {
  const found = new Set<string>();
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split(/[\0 ]/);
    // Sandboxes have ids that no account of the machine has.
    const owner = (await stat(`/proc/${pid}`).catch(() => undefined))?.uid ?? 0;
    const namespace = await readlink(`/proc/${pid}/ns/user`).catch(() => undefined);
    if (words.includes(argument) && owner > 1_000_000_000 && namespace !== undefined) found.add(namespace);
  }
  return found;
}

describe('InvokeBrowser', () => {
  it('does every action of mouse and keyboard to the page in front, and shows it', async () => {
    const browser = await playwright();
    const context = browser.contexts()[0] ?? (await browser.newContext());
    const page = await context.newPage();
    await page.setContent(`<style>body{margin:0}textarea,div{user-select:none;position:absolute;left:0;width:200px;height:100px}</style>
      <textarea style="top:0"></textarea><div style="top:200px" draggable="false"></div><p style="height:5000px"></p>`);
    await page.evaluate(`window.seen = [];
      for (const name of ['click', 'dblclick', 'contextmenu', 'mousemove', 'mousedown', 'mouseup'])
        document.querySelector('div').addEventListener(name, (event) => seen.push(name + ' ' + event.clientX));`);
    // Chromium drops what is done to a page before its first picture.
    await page.screenshot();
    const seen = async (...wanted: string[]): Promise<void> => {
      await expect.poll(() => page.evaluate('seen')).toEqual(expect.arrayContaining(wanted));
      await page.evaluate('seen.length = 0');
    };
    const at = { x: 50, y: 250 };
    const done = { status: 'SUCCESS' };
    expect(await invoke({ mouseClick: { ...at, clickCount: 2 } })).toEqual({ mouseClick: done });
    await seen('click 50', 'dblclick 50');
    expect(await invoke({ mouseClick: { ...at, button: 'RIGHT' } })).toEqual({ mouseClick: done });
    await seen('contextmenu 50');
    expect(await invoke({ mouseMove: { x: 60, y: 250 } })).toEqual({ mouseMove: done });
    await seen('mousemove 60');
    expect(await invoke({ mouseDrag: { startX: 10, startY: 250, endX: 90, endY: 250 } })).toEqual({ mouseDrag: done });
    await seen('mousedown 10', 'mousemove 50', 'mouseup 90');
    await invoke({ mouseClick: { x: 50, y: 50 } });
    expect(await invoke({ keyType: { text: 'Hello, Jürgen\n2' } })).toEqual({ keyType: done });
    expect(await invoke({ keyPress: { key: 'backspace', presses: 2 } })).toEqual({ keyPress: done });
    await expect.poll(() => page.inputValue('textarea')).toBe('Hello, Jürgen');
    expect(await invoke({ keyShortcut: { keys: ['ctrl', 'a'] } })).toEqual({ keyShortcut: done });
    await invoke({ keyPress: { key: 'x' } });
    await expect.poll(() => page.inputValue('textarea')).toBe('x');
    expect(await invoke({ mouseScroll: { x: 500, y: 500, deltaY: 300 } })).toEqual({ mouseScroll: done });
    await expect.poll(() => page.evaluate('scrollY')).toBe(300);
    const shot = (await invoke({ screenshot: { format: 'PNG' } }))?.screenshot;
    expect(shot?.status).toBe('SUCCESS');
    expect(Buffer.from(shot?.data ?? []).toString('latin1', 1, 4)).toBe('PNG');
    expect(await invoke({ keyPress: { key: 'no such key' } })).toMatchObject({
      keyPress: { status: 'FAILED', error: expect.stringContaining('There is no key') },
    });
    expect(await invoke({ mouseClick: { x: 9000, y: 0 } })).toMatchObject({
      mouseClick: { status: 'FAILED', error: expect.stringContaining('outside the page') },
    });
    await browser.close();
  });
});

describe('the SDKs', () => {
  const options = () => ({ endpoint: platform.ready.endpoint, credentials: platform.credentials, maxAttempts: 1 });

  it('TypeScript: sign the handshake, take and release control, and end the session with its scope', async () => {
    let ended: BrowserClient;
    {
      await using client = await browserSession(platform.ready.region, {
        ...options(),
        session: { name: 'by the SDK' },
      });
      ended = client;
      const { url, headers } = await client.generateWsHeaders();
      const cdp = await RawCdp.open(url, headers);
      expect((await client.invoke({ mouseMove: { x: 1, y: 1 } })).mouseMove?.status).toBe('SUCCESS');
      const view = await fetch(await client.generateLiveViewUrl({ readOnly: true }), { redirect: 'manual' });
      expect([view.status, view.headers.get('location')]).toEqual([303, expect.stringContaining('mode=read-only')]);
      await expect(client.generateLiveViewUrl({ expiresIn: 301 })).rejects.toThrow('300 seconds');
      await client.takeControl();
      expect((await cdp.closed).code).toBe(4001);
      await client.releaseControl();
      const again = await client.generateWsHeaders();
      const page = await chromium.connectOverCDP(again.url, { headers: again.headers });
      expect(page.contexts()).toHaveLength(1);
      await page.close();
    }
    expect(ended.sessionId).toBeUndefined();
  });

  it.skipIf(!python)('Python: the same, through its own WebSocket library', async () => {
    const script = `
import json, sys, urllib.error, urllib.request
sys.path.insert(0, sys.argv[1])
from websockets.sync.client import connect
from websockets.exceptions import ConnectionClosed
from agentplatform import browser_session
seen = {}
with browser_session(name="by the SDK", viewport={"width": 800, "height": 600}) as browser:
    url, headers = browser.generate_ws_headers()
    with connect(url, additional_headers={k: v for k, v in headers.items() if k.lower() != "host"}) as socket:
        socket.send(json.dumps({"id": 1, "method": "Browser.getVersion"}))
        seen["product"] = json.loads(socket.recv())["result"]["product"].split("/")[0]
        browser.take_control()
        try:
            socket.recv()
        except ConnectionClosed as closed:
            seen["closed"] = closed.rcvd.code
    browser.release_control()
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None
    try:
        urllib.request.build_opener(Stay).open(browser.generate_live_view_url(read_only=True))
    except urllib.error.HTTPError as led:
        seen["view"] = [led.code, "mode=read-only" in led.headers["location"]]
    seen["moved"] = browser.invoke({"mouseMove": {"x": 1, "y": 1}})["mouseMove"]["status"]
seen["ended"] = browser.session_id is None
print(json.dumps(seen))
`;
    const sources = join(import.meta.dirname, '../../python/agentplatform/src');
    const { stdout } = await run('python3', ['-c', script, sources], {
      env: { ...process.env, ...python?.env, ...platform.env },
    });
    expect(JSON.parse(stdout)).toEqual({
      product: 'Chrome',
      closed: 4001,
      view: [303, true],
      moved: 'SUCCESS',
      ended: true,
    });
  });
});

describe('agentcore browser', () => {
  it('starts a session of the size and time that are asked for, lists it while it lives, and stops it', async () => {
    const cli = async (...args: string[]) => {
      const { code, stdout, stderr } = await agentcoreInside(['browser', ...args], {
        cwd: import.meta.dirname,
        env: platform.env,
        stdin: '',
      });
      return { code, stdout, stderr };
    };
    const started = await cli('start', '--name', 'by-hand', '--timeout', '600', '--view-port', '800x600', '--json');
    expect(started.code, started.stderr).toBe(0);
    const { sessionId, automation } = JSON.parse(started.stdout);
    const of = { browserIdentifier: BUILT_IN, sessionId };
    expect(await clients.data.send(new GetBrowserSessionCommand(of))).toMatchObject({
      name: 'by-hand',
      sessionTimeoutSeconds: 600,
      viewPort: { width: 800, height: 600 },
      streams: { automationStream: { streamEndpoint: automation } },
    });
    expect((await cli('list')).stdout).toMatch(new RegExp(`^${sessionId} +by-hand +READY `, 'm'));
    const leadsTo = async (...options: string[]) => {
      const { stdout } = await cli('open', sessionId, ...options);
      return (await fetch(stdout.trim(), { redirect: 'manual' })).headers.get('location');
    };
    expect(await leadsTo()).toContain(`session=${sessionId}&mode=full&ticket=`);
    expect(await leadsTo('--read-only')).toContain('mode=read-only');
    expect((await cli('stop', sessionId)).stdout).toBe(`Session ${sessionId} has ended.\n`);
    expect((await cli('list')).stdout).not.toContain(sessionId);
    expect((await cli('list', '--all')).stdout).toMatch(new RegExp(`^${sessionId} +by-hand +TERMINATED `, 'm'));
    for (const wrong of [
      ['--view-port', 'big'],
      ['--timeout', '0'],
      ['--timeout', 'an hour'],
    ])
      expect(await cli('start', ...wrong)).toMatchObject({ code: 2, stderr: expect.stringContaining('It must be') });
    expect((await cli('stop', 'nobodys')).stderr).toContain('has no session nobodys of yours');
  });
});

describe('a browser that breaks down', () => {
  it('ends its connections and starts again, and programs connect again', async () => {
    const before = await raw();
    await before.send('Browser.crash').catch(() => undefined);
    expect((await before.closed).code).toBe(1011);
    await expect
      .poll(() => raw().then((cdp) => cdp.send('Browser.getVersion'), String), { timeout: 60_000 })
      .toMatchObject({
        product: expect.stringContaining('Chrome'),
      });
  });
});

describe('browsers and their sessions', () => {
  it('are made, seen, listed and deleted by the AWS SDK for JavaScript; a session ends with its browser', async () => {
    const { control, data } = clients;
    const create = {
      name: 'from_js',
      description: 'of a test',
      networkConfiguration: { networkMode: 'PUBLIC' },
    } as const;
    const made = await control.send(new CreateBrowserCommand({ ...create, tags: { team: 'red' } }));
    const browserId = made.browserId ?? '';
    expect(await control.send(new GetBrowserCommand({ browserId }))).toMatchObject({ ...create, status: 'READY' });
    const listed = async (type: 'SYSTEM' | 'CUSTOM') =>
      (await control.send(new ListBrowsersCommand({ type }))).browserSummaries?.map(({ name }) => name);
    expect([await listed('SYSTEM'), await listed('CUSTOM')]).toEqual([[BUILT_IN], ['from_js']]);
    const own = await startBrowserSession(clients, {
      browserIdentifier: browserId,
      name: 'small',
      sessionTimeoutSeconds: 600,
      viewPort: { width: 800, height: 600 },
    });
    const of = { browserIdentifier: browserId, sessionId: own.id };
    expect(await data.send(new GetBrowserSessionCommand(of))).toMatchObject({
      name: 'small',
      status: 'READY',
      sessionTimeoutSeconds: 600,
      viewPort: { width: 800, height: 600 },
      streams: { automationStream: { streamEndpoint: own.automation, streamStatus: 'ENABLED' } },
    });
    const cdp = await raw(own);
    const size = { expression: '[innerWidth, innerHeight].join()' };
    expect((await cdp.send('Runtime.evaluate', size, await cdp.page())).result.value).toBe('800,600');
    await control.send(new DeleteBrowserCommand({ browserId }));
    expect((await cdp.closed).code).toBeGreaterThanOrEqual(1001);
    await expect(control.send(new GetBrowserCommand({ browserId }))).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
    });
  });

  it('end when they are stopped, and are TERMINATED then', async () => {
    const { data } = clients;
    const of = { browserIdentifier: BUILT_IN, sessionId: session.id };
    await data.send(new StopBrowserSessionCommand(of));
    expect((await data.send(new GetBrowserSessionCommand(of))).status).toBe('TERMINATED');
    const { items } = await data.send(new ListBrowserSessionsCommand({ browserIdentifier: BUILT_IN, status: 'READY' }));
    expect(items).toEqual([]);
    await expect(raw()).rejects.toThrow('status 404');
  });
});
