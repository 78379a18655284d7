import type { Browser, Page } from 'playwright-core';
import type { Output } from '../build/output.ts';
import { type Device, NO_SCROLLBARS, screenOf } from '../preview/devices.ts';
import { mimeType } from '../server/mime.ts';
import type { AccessPolicy } from './access-policy.ts';
import type { FlatPart } from './flat-document.ts';
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
  readonly outputs: ReadonlyMap<string, Output>;
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
export const LIVE_PAGE_ARGS: readonly string[] = ['--webrtc-ip-handling-policy=disable_non_proxied_udp', NO_SCROLLBARS];
const LOAD_MS = 15_000;
const CALL_MS = 5_000;
const QUIET_MS = 40;
const SETTLE_MS = 2_000;
/** What a page loads after an event is worth a longer wait. */
const LOADS_MS = 4_500;
const MAX_SNAPSHOT = 2_000_000;
const MAX_ALERTS = 10;
const MAX_ALERT = 500;

export async function openLivePage({
  browser,
  device,
  outputs,
  allows,
  egress,
  agent,
  onRefused,
  onPageError,
}: LivePageOptions): Promise<LivePage> {
  const context = await browser.newContext({
    ...screenOf(device),
    serviceWorkers: 'block',
    acceptDownloads: false,
    // Without the second, Chromium goes to addresses of this machine by itself.
    proxy: { server: egress, bypass: '<-loopback>' },
  });
  let alive = true;
  // What did not answer would keep a processor busy for the rest of the visit.
  const stop = (): void => {
    alive = false;
    void context.close().catch(() => undefined);
  };
  try {
    await context.addInitScript(agent);
    await context.route('**/*', async (route) => {
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
      const output = outputs.get(name);
      if (name !== 'index.html' && route.request().isNavigationRequest()) return route.fulfill({ status: 204 });
      if (!output) return route.fulfill({ status: 404, body: '' });
      const headers = { 'content-type': mimeType(name), 'content-security-policy': NO_WORKERS };
      await route.fulfill({ body: Buffer.from(output.read()), headers });
    });
    const page = await context.newPage();
    const end = (): void => {
      alive = false;
    };
    page.on('crash', end);
    page.on('close', end);
    const alerts: string[] = [];
    page.on('dialog', (dialog) => {
      if (dialog.type() === 'alert' && alerts.length < MAX_ALERTS) alerts.push(dialog.message().slice(0, MAX_ALERT));
      void dialog.dismiss().catch(() => undefined);
    });
    page.on('pageerror', ({ message }) => onPageError(message));
    context.on('page', (other) => {
      if (other !== page) void other.close().catch(() => undefined);
    });
    // In place of the empty page: going back from the first document must lead nowhere.
    await Promise.all([
      page.waitForURL(`${ORIGIN}/`, { timeout: LOAD_MS, waitUntil: 'commit' }),
      page.evaluate(`void setTimeout(function () { location.replace('${ORIGIN}/'); }, 0)`),
    ]);
    // Addresses that no route sees, such as file: and about:, take a page away from its document.
    page.on('framenavigated', (frame) => {
      if (frame === page.mainFrame() && !frame.url().startsWith(`${ORIGIN}/`)) stop();
    });
    const quiet = () => bounded(settle(page), stop, LOADS_MS + CALL_MS);
    await quiet();
    return {
      async snapshot(eventPath) {
        const flatten = () =>
          bounded(
            page.evaluate((path) => __handsetAgent.flatten(path), eventPath),
            stop,
          );
        const snapshot = await flatten().catch(async (error: unknown) => {
          await untilReloaded(page, error);
          await quiet();
          return flatten();
        });
        const size = snapshot.parts.reduce((sum, part) => sum + (typeof part === 'string' ? part.length : 0), 0);
        if (size > MAX_SNAPSHOT)
          throw new Error(`The page has grown to ${size} characters; ${MAX_SNAPSHOT} is the limit.`);
        return { ...snapshot, alerts: alerts.splice(0) };
      },
      async deliver(event) {
        const label = await bounded(
          page
            .evaluate((given) => __handsetAgent.receive(given), event)
            .catch((error: unknown) => untilReloaded(page, error).then(() => '')),
          stop,
        );
        await quiet();
        return label;
      },
      get alive() {
        return alive;
      },
      close: () => context.close(),
    };
  } catch (error) {
    await context.close();
    throw error;
  }
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

/** A script that never ends would hold its visitor for ever. */
async function bounded<T>(work: Promise<T>, onLate: () => void, limit = CALL_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`The page did not answer in ${limit / 1000} seconds.`));
      onLate();
    }, limit);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
