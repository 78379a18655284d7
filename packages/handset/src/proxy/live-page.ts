import type { Browser, BrowserContext, Page, Route } from 'playwright-core';
import type { Output } from '../build/output.ts';
import { type Device, NO_SCROLLBARS, screenOf } from '../preview/devices.ts';
import { mimeType } from '../server/mime.ts';
import type { AccessPolicy } from './access-policy.ts';
import type { FlatPart } from './flat-document.ts';
import { HEAP_ARGS, PAGE_MEMORY_MB } from './page-memory.ts';
import type { PhoneEvent } from './phone-event.ts';

/** A page as it is now. */
export interface Snapshot extends Written {
  /** What it said to its reader since the last snapshot. */
  readonly alerts: readonly string[];
}

/** What browser/page-agent.js writes of a page. */
interface Written {
  readonly parts: readonly FlatPart[];
  /** Action texts that the phone may answer. */
  readonly locals: readonly string[];
  readonly scroll: number;
}

/** A page that runs its scripts here for the length of a visit. */
export interface LivePage {
  snapshot(eventPath: string): Promise<Snapshot>;
  /**
   * Give the page an event and wait until it is quiet; returns a name for what was touched, empty if it is gone with its
   * document. A document that no snapshot was taken of is given nothing: the event was meant for another.
   */
  deliver(event: PhoneEvent): Promise<string>;
  /** False once the page has crashed or was closed. */
  readonly alive: boolean;
  close(): Promise<void>;
}

export interface LivePageOptions {
  readonly browser: Browser;
  readonly device: Device;
  /** The files of public/ as they are now. */
  readonly outputs: () => ReadonlyMap<string, Output>;
  readonly allows: AccessPolicy;
  /** Address of the HTTP proxy through which all traffic of the page goes. */
  readonly egress: string;
  /** Text of browser/page-agent.js. */
  readonly agent: string;
  /** Told about every address that the policy refused. */
  readonly onRefused: (url: string) => void;
  /** Told about what the page's scripts threw and nobody caught. */
  readonly onPageError: (message: string) => void;
}

/** A name that no resolver knows: the application is served from memory, never from a network. */
const ORIGIN = 'http://app.handset.invalid';
/** What a worker does is not waited for, so the phone would not see it. */
const NO_WORKERS = "worker-src 'none'";
/** For the start of a browser that opens live pages: what does not go through a proxy, such as WebRTC's datagrams, stays in. */
export const LIVE_PAGE_ARGS: readonly string[] = [
  '--webrtc-ip-handling-policy=disable_non_proxied_udp',
  NO_SCROLLBARS,
  ...HEAP_ARGS,
];
const LOAD_MS = 15_000;
const CALL_MS = 5_000;
const QUIET_MS = 40;
const SETTLE_MS = 2_000;
/** What a page loads after an event is worth a longer wait. */
const LOADS_MS = 4_500;
const MAX_SNAPSHOT = 2_000_000;
const MAX_ALERTS = 10;
const MAX_ALERT = 500;

export async function openLivePage(options: LivePageOptions): Promise<LivePage> {
  const { browser, device, egress, agent } = options;
  const context = await browser.newContext({
    ...screenOf(device),
    serviceWorkers: 'block',
    acceptDownloads: false,
    // Without the second, Chromium goes to addresses of this machine by itself.
    proxy: { server: egress, bypass: '<-loopback>' },
  });
  try {
    await context.addInitScript(agent);
    await context.route('**/*', answerFrom(options));
    const page = await context.newPage();
    const life = watchLife(context, page);
    const alerts = collectAlerts(page);
    page.on('pageerror', ({ message }) => options.onPageError(message));
    context.on('page', (other) => {
      if (other !== page) void other.close().catch(() => undefined);
    });
    // In place of the empty page: going back from the first document must lead nowhere.
    await Promise.all([
      page.waitForURL(`${ORIGIN}/`, { timeout: LOAD_MS, waitUntil: 'commit' }),
      page.evaluate(`void setTimeout(function () { location.replace('${ORIGIN}/'); }, 0)`),
    ]);
    life.holdTo(ORIGIN);
    const quiet = () => bounded(settle(page), life.stop, LOADS_MS + CALL_MS);
    await quiet();
    const snapshot = async (eventPath: string): Promise<Snapshot> => {
      const flatten = () =>
        bounded(
          page.evaluate((path) => __handsetAgent.flatten(path), eventPath),
          life.stop,
        );
      const written = await flatten().catch(async (error: unknown) => {
        await untilReloaded(page, error);
        await quiet();
        return flatten();
      });
      const size = written.parts.reduce((sum, part) => sum + (typeof part === 'string' ? part.length : 0), 0);
      if (size > MAX_SNAPSHOT)
        throw new Error(`The page has grown to ${size} characters; ${MAX_SNAPSHOT} is the limit.`);
      return { ...written, alerts: alerts.splice(0) };
    };
    const deliver = async (event: PhoneEvent): Promise<string> => {
      const receive = page
        .evaluate((given) => __handsetAgent.receive(given), event)
        .catch((error: unknown) => untilReloaded(page, error).then(() => ''));
      const label = await bounded(receive, life.stop);
      await quiet();
      return label;
    };
    return {
      snapshot: (eventPath) => snapshot(eventPath).catch(life.explain),
      deliver: (event) => deliver(event).catch(life.explain),
      get alive() {
        return life.alive;
      },
      close: () => context.close(),
    };
  } catch (error) {
    await context.close();
    throw error;
  }
}

/** Serves the application from memory, and lets through what else its policy allows. */
function answerFrom({ outputs, allows, onRefused }: LivePageOptions): (route: Route) => Promise<void> {
  return async (route) => {
    const url = route.request().url();
    const { origin, pathname } = new URL(url);
    if (origin !== ORIGIN) {
      if (route.request().isNavigationRequest()) {
        onRefused(url);
        // No content: the page stays where it is, where an error would put a page of the browser in its place.
        return route.fulfill({ status: 204 });
      }
      if (allows(url)) return route.continue();
      onRefused(url);
      return route.abort('blockedbyclient');
    }
    const name = safeDecode(pathname).slice(1) || 'index.html';
    const output = outputs().get(name);
    if (name !== 'index.html' && route.request().isNavigationRequest()) return route.fulfill({ status: 204 });
    if (!output) return route.fulfill({ status: 404, body: '' });
    const headers = { 'content-type': mimeType(name), 'content-security-policy': NO_WORKERS };
    await route.fulfill({ body: Buffer.from(output.read()), headers });
  };
}

interface Life {
  readonly alive: boolean;
  /** End the page: what did not answer would keep a processor busy for the rest of the visit. */
  stop(): void;
  /** End the page when it goes to another origin: addresses that no route sees, such as file:, take it away from its document. */
  holdTo(origin: string): void;
  /** Throws an error anew in words for the visitor: what the browser's driver says is none of theirs. */
  explain(error: unknown): never;
}

function watchLife(context: BrowserContext, page: Page): Life {
  let ended: string | undefined;
  const end = (reason: string): void => {
    ended ??= reason;
  };
  const stop = (): void => {
    end('The page has ended.');
    void context.close().catch(() => undefined);
  };
  page.on('crash', () => end(`The page has ended: it crashed, or took more than ${PAGE_MEMORY_MB} MB of memory.`));
  page.on('close', () => end('The page has ended.'));
  return {
    get alive() {
      return ended === undefined;
    },
    stop,
    holdTo(origin) {
      page.on('framenavigated', (frame) => {
        if (frame !== page.mainFrame() || frame.url().startsWith(`${origin}/`)) return;
        end('The page has ended: it left the application for another address.');
        stop();
      });
    },
    explain(error) {
      if (error instanceof LateError || (ended === undefined && !isDriverError(error))) throw error;
      throw new Error(ended ?? 'The page cannot be shown: its scripts have broken what shows it.', { cause: error });
    },
  };
}

/** What the driver of the browser says begins with the name of its call. */
function isDriverError(error: unknown): boolean {
  return error instanceof Error && /^(page|frame|browserContext|locator)\.\w+: /.test(error.message);
}

function collectAlerts(page: Page): string[] {
  const alerts: string[] = [];
  page.on('dialog', (dialog) => {
    if (dialog.type() === 'alert' && alerts.length < MAX_ALERTS) alerts.push(dialog.message().slice(0, MAX_ALERT));
    void dialog.dismiss().catch(() => undefined);
  });
  return alerts;
}

// What browser/page-agent.js puts into the page; functions given to `evaluate` run there and find it.
declare const __handsetAgent: {
  flatten(eventPath: string): Written;
  receive(event: PhoneEvent): string;
  settle(quiet: number, limit: number, loadLimit: number): Promise<void>;
};

async function settle(page: Page): Promise<void> {
  try {
    const limits = [QUIET_MS, SETTLE_MS, LOADS_MS] as const;
    await page.evaluate((given) => __handsetAgent.settle(...given), limits);
  } catch (error) {
    await untilReloaded(page, error);
    await settle(page);
  }
}

/** A page that loads itself anew takes away what runs in it: wait for its next document. Throws any other error. */
async function untilReloaded(page: Page, error: unknown): Promise<void> {
  if (page.isClosed() || !/context was destroyed/.test(String(error))) throw error;
  await page.waitForLoadState('domcontentloaded', { timeout: CALL_MS });
}

function safeDecode(pathname: string): string {
  try {
    return decodeURIComponent(pathname);
  } catch {
    return pathname;
  }
}

class LateError extends Error {}

/** A script that never ends would hold its visitor for ever. */
async function bounded<T>(work: Promise<T>, onLate: () => void, limit = CALL_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new LateError(`The page did not answer in ${limit / 1000} seconds.`));
      onLate();
    }, limit);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
