// The browser's process: started with the session's settings, started again when it breaks down.
import { spawn } from 'node:child_process';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { DevTools } from './devtools.mjs';
import { DOWNLOADS } from './downloads.mjs';

const HOME = '/home/agent';
const USER_DATA = `${HOME}/browser`;
const POLICIES = '/etc/chromium/policies';
const STARTS_WITHIN_MS = 30_000;
const SETTLES_WITHIN_MS = 10_000;
const PAGES_WITHIN_MS = 5_000;
/** More than anybody can look at; a page may open any number. */
const MAX_PAGES = 100;
const MAX_TEXT = 2000;
const MAX_ORIGINS = 500;
/** So often it may break down within a minute; a browser that does more often is of no use to anybody. */
const MAX_RESTARTS = 5;
/** How often a page is asked for its size; under a second on any machine that is not busy. */
const MAX_SIZE_ASKED = 150;
/** So often in a row it has to answer with the right one. */
const SIZE_KEPT = 8;
const SIZE_EVERY_MS = 25;

const FLAGS = [
  '--headless=new',
  '--remote-debugging-port=0',
  `--user-data-dir=${USER_DATA}`,
  '--no-first-run',
  '--hide-crash-restore-bubble',
  '--no-default-browser-check',
  '--no-service-autorun',
  // /dev/shm is memory and small; the disk of a sandbox is neither.
  '--disable-dev-shm-usage',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-breakpad',
  '--disable-crash-reporter',
  '--metrics-recording-only',
  '--password-store=basic',
  // A page that nobody looks at runs as one that somebody does.
  '--disable-background-timer-throttling',
  '--disable-backgrounding-occluded-windows',
  '--disable-renderer-backgrounding',
  '--disable-features=AutofillServerCommunication,OptimizationHints,MediaRouter,Translate,NetworkTimeServiceQuerying,LensOverlay,AimEnabled,PreconnectToSearch,WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup',
];

export class Chromium {
  #process;
  #settings;
  #endpoint;
  #visited = new Set();
  #starts = [];
  #stopping = false;
  #turn = Promise.resolve();
  #onLost;

  /** `onLost` is told why, once it cannot be started again. */
  constructor(onLost) {
    this.#onLost = onLost;
  }

  get ready() {
    return this.#endpoint !== undefined;
  }

  /** Port and path of the browser's own WebSocket. */
  get endpoint() {
    return this.#endpoint;
  }

  /** Its open pages, the one in front first: Chromium lists them by when each was last shown or used, whatever the page says of itself. */
  async pages() {
    if (this.#endpoint === undefined) throw Object.assign(new Error('Chromium is starting.'), { status: 503 });
    const answer = await fetch(`http://127.0.0.1:${this.#endpoint.port}/json/list`, {
      signal: AbortSignal.timeout(PAGES_WITHIN_MS),
    });
    const targets = await answer.json();
    // The parts of Chromium's own window are pages by name.
    const pages = targets.filter(({ type, url }) => type === 'page' && !url.startsWith('chrome://'));
    return pages.slice(0, MAX_PAGES).map(({ id, title, url }) => ({
      id,
      title: String(title).slice(0, MAX_TEXT),
      url: String(url).slice(0, MAX_TEXT),
    }));
  }

  about() {
    return {
      ready: this.ready,
      sandbox: this.#settings?.sandbox ?? false,
      restarts: Math.max(0, this.#starts.length - 1),
    };
  }

  /** Has Chromium run with these settings: as it is where it does already, anew otherwise. One after the other. */
  start(settings) {
    const turn = this.#turn.then(async () => {
      if (this.ready && JSON.stringify(settings) === JSON.stringify(this.#settings)) return;
      await this.#end();
      await this.#prepare(settings);
      await this.#begin(settings);
    });
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #end() {
    const child = this.#process;
    if (child === undefined) return;
    this.#stopping = true;
    const gone = new Promise((done) => child.once('exit', done));
    child.kill('SIGKILL');
    await gone;
    this.#stopping = false;
    await rm(USER_DATA, { recursive: true, force: true });
    this.#visited.clear();
  }

  async #prepare({ policies, files }) {
    for (const folder of ['managed', 'recommended']) {
      // The folders are the image's; only what is in them is the session's.
      await mkdir(join(POLICIES, folder), { recursive: true });
    }
    for (const [name, content] of Object.entries(policies))
      await writeFile(inside(POLICIES, name), JSON.stringify(content));
    for (const [name, base64] of Object.entries(files)) {
      const path = inside(HOME, name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, Buffer.from(base64, 'base64'));
    }
    await mkdir(DOWNLOADS, { recursive: true });
  }

  async #begin(settings) {
    this.#settings = settings;
    this.#starts = [...this.#starts.filter((at) => at > Date.now() - 60_000), Date.now()];
    const { width, height } = settings.viewPort;
    const own = [`--window-size=${width},${height}`, ...(settings.sandbox ? [] : ['--no-sandbox']), ...settings.args];
    const child = spawn('/usr/lib/chromium/chromium', [...FLAGS, ...own, 'about:blank'], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, HOME, CHROME_HEADLESS: '1' },
    });
    this.#process = child;
    const said = [];
    const found = Promise.withResolvers();
    const lines = createInterface({ input: child.stderr }).on('error', () => undefined);
    lines.on('line', (line) => {
      const listening = /^DevTools listening on ws:\/\/127\.0\.0\.1:(\d+)(\/devtools\/browser\/\S+)$/.exec(line);
      if (listening) found.resolve({ port: Number(listening[1]), path: listening[2] });
      said.push(line);
      if (said.length > 20) said.shift();
    });
    child.once('error', (error) => found.reject(error));
    child.once('exit', (code, signal) => {
      this.#endpoint = undefined;
      this.#process = undefined;
      found.reject(new Error(`Chromium ended (${signal ?? code}): ${said.slice(-5).join(' | ')}`));
      if (!this.#stopping && this.#settings === settings)
        this.#again(
          settings,
          `${signal ?? code}: ${said
            .filter((line) => !line.includes('dbus'))
            .slice(-5)
            .join(' | ')}`,
        );
    });
    const enough = new AbortController();
    setTimeout(STARTS_WITHIN_MS, undefined, enough).then(
      () => found.reject(new Error('Chromium did not start in time.')),
      () => undefined,
    );
    try {
      const endpoint = await found.promise;
      // Whatever becomes of its first page, a browser that listens can be driven.
      await Promise.race([settle(endpoint, settings), setTimeout(SETTLES_WITHIN_MS, undefined, enough)]);
      await this.#noteOrigins(endpoint).catch(() => undefined);
      this.#endpoint = endpoint;
    } catch (error) {
      // Where the kernel lets nobody make namespaces, Chromium's own sandbox cannot be: the platform's stays around it.
      if (settings.sandbox && said.some((line) => /No usable sandbox|Operation not permitted|zygote_host/.test(line))) {
        process.stderr.write(`browser host: Chromium runs without its own sandbox: ${said.join(' | ')}\n`);
        this.#stopping = true;
        child.kill('SIGKILL');
        this.#stopping = false;
        return this.#begin({ ...settings, sandbox: false });
      }
      throw error;
    } finally {
      enough.abort();
    }
  }

  /** Remembers which origins are visited: what they keep is on disk only after a while. */
  async #noteOrigins(endpoint) {
    const devtools = await DevTools.open(endpoint);
    devtools.onEvent = (_method, { targetInfo }) => {
      if (this.#visited.size < MAX_ORIGINS && /^https?:/.test(targetInfo?.url ?? ''))
        this.#visited.add(new URL(targetInfo.url).origin);
    };
    await devtools.send('Target.setDiscoverTargets', { discover: true });
  }

  /** Origins that may have something in local storage: those that were visited, and those that are on disk. At most 500. */
  async origins() {
    const found = new Set(this.#visited);
    const folder = join(USER_DATA, 'Default', 'Local Storage', 'leveldb');
    for (const name of await readdir(folder).catch(() => [])) {
      if (!/\.(log|ldb)$/.test(name)) continue;
      const content = await readFile(join(folder, name), 'latin1').catch(() => '');
      // Keys of the database that Chromium keeps it in.
      for (const [, origin] of content.matchAll(/META(?:ACCESS)?:(https?:\/\/[a-zA-Z0-9.-]+(?::\d+)?)/g))
        found.add(origin);
    }
    return [...found].slice(0, MAX_ORIGINS);
  }

  #again(settings, why) {
    process.stderr.write(`browser host: Chromium ended (${why})\n`);
    if (this.#starts.filter((at) => at > Date.now() - 60_000).length > MAX_RESTARTS)
      return this.#onLost('Chromium breaks down again and again.');
    this.#turn = this.#turn
      .then(() => this.#begin(settings))
      .catch((error) => this.#onLost(`Chromium could not be started again: ${error.message}`));
  }
}

/** Gives the page the size that was asked for, and downloads their place. */
async function settle(endpoint, { viewPort }) {
  const devtools = await DevTools.open(endpoint);
  try {
    await devtools.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: DOWNLOADS });
    const { targetInfos } = await devtools.send('Target.getTargets');
    const page = targetInfos.find(({ type, url }) => type === 'page' && !url.startsWith('chrome'));
    if (page === undefined) return;
    const { targetId } = page;
    const { windowId } = await devtools.send('Browser.getWindowForTarget', { targetId });
    const { sessionId } = await devtools.send('Target.attachToTarget', { targetId, flatten: true });
    // A window that is being laid out makes another size of the one that was asked for: it has it once it keeps it.
    for (let asked = 0, kept = 0; asked < MAX_SIZE_ASKED && kept < SIZE_KEPT; asked += 1) {
      const { result } = await devtools.send(
        'Runtime.evaluate',
        { expression: '[innerWidth, innerHeight].join("x")' },
        sessionId,
      );
      kept = result.value === `${viewPort.width}x${viewPort.height}` ? kept + 1 : 0;
      if (kept === 0) await devtools.send('Browser.setContentsSize', { windowId, ...viewPort });
      await setTimeout(SIZE_EVERY_MS);
    }
  } finally {
    devtools.close();
  }
}

/** The path of a file below a folder. Throws for a name that leads out of it. */
function inside(folder, name) {
  const path = resolve(folder, name);
  if (path.startsWith(`${folder}/`)) return path;
  throw Object.assign(new Error(`${name} is not below ${folder}.`), { status: 400 });
}
