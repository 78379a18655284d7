import type { IncomingMessage, ServerResponse } from 'node:http';
import path from 'node:path';
import type { BuildReport } from '../watch/watch-session.ts';
import { browserScript } from './browser-script.ts';
import { injectScript } from './inject.ts';
import { createLiveEvents, type LiveEvent } from './live-events.ts';
import { isLoopback, namesThisServer, serverUrl } from './loopback.ts';
import { mimeType } from './mime.ts';
import { readPublicFile } from './public-file.ts';
import { serve } from './serve.ts';

export interface DevServerOptions {
  /** Path of the project on this machine; its public/ is served. */
  readonly root: string;
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Put the script that listens for builds into pages. */
  readonly live: boolean;
}

export interface DevServer {
  /** Such as `http://localhost:3333`. */
  readonly url: string;
  readonly port: number;
  /** Whether only this machine can reach it. */
  readonly local: boolean;
  /** Tell open pages about a build: swap style sheets, reload, or show what is wrong. */
  announce(report: BuildReport): void;
  close(): Promise<void>;
}

const LIVE_SCRIPT = '/__handset/live.js';
const LIVE_EVENTS = '/__handset/events';

/** Serve public/ of a project. Throws `port-in-use`. */
export async function startDevServer({ root, host, port, live }: DevServerOptions): Promise<DevServer> {
  const folder = path.join(root, 'public');
  const events = createLiveEvents();
  // Pages that reconnect to a server started anew must not take its first build for the one they know.
  let build = Date.now();
  let problems: readonly unknown[] = [];
  let address = '';

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const reply = (status: number, type: string, body: string | Buffer, headers = {}): void => {
      const length = Buffer.byteLength(body);
      response.writeHead(status, { 'content-type': type, 'content-length': length, ...HEADERS, ...headers });
      response.end(request.method === 'HEAD' ? undefined : body);
    };
    const text = (status: number, sentence: string, headers = {}): void =>
      reply(status, 'text/plain; charset=utf-8', `${sentence}\n`, headers);

    if (!namesThisServer(request, host, address)) return text(403, `This server answers to ${host} only.`);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return text(405, 'This server only shows files: use GET.', { allow: 'GET, HEAD' });
    }
    const pathname = (request.url ?? '/').split(/[?#]/, 1)[0] ?? '/';
    if (live && pathname === LIVE_SCRIPT) return reply(200, mimeType('live.js'), browserScript('browser/live.js'));
    if (live && pathname === LIVE_EVENTS) {
      return events.connect(request, response, [
        { type: 'hello', build },
        { type: 'problems', problems },
      ]);
    }
    // Taken before the file is read: a page that is read while a build ends is loaded once too often, never too seldom.
    const shown = build;
    const file = await readPublicFile(folder, pathname);
    const isPage = file ? file.name.endsWith('.html') : pathname === '/';
    if (!file && !isPage) return text(404, `There is no ${pathname} in public/.`);
    const bytes = file?.bytes ?? Buffer.from(NO_PAGE);
    const body = live && isPage ? injectScript(bytes.toString('utf8'), `${LIVE_SCRIPT}?build=${shown}`) : bytes;
    reply(file ? 200 : 404, mimeType(file?.name ?? 'index.html'), body);
  };

  const handler = (request: IncomingMessage, response: ServerResponse): void => {
    answer(request, response).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(500, { 'content-type': 'text/plain; charset=utf-8' });
      response.end(`The server failed: ${error instanceof Error ? error.message : String(error)}\n`);
    });
  };
  const served = await serve(handler, host, port);
  address = served.address;

  return {
    url: serverUrl(host, served.port),
    port: served.port,
    local: isLoopback(served.address),
    announce(report) {
      problems = report.ok ? [] : report.problems;
      if (!report.ok) return events.send({ type: 'problems', problems });
      events.send({ type: 'problems', problems });
      const event = eventFor(report, build + 1);
      if (!event) return;
      build += 1;
      events.send(event);
    },
    async close() {
      events.close();
      await served.close();
    },
  };
}

function eventFor({ written, removed }: BuildReport, build: number): LiveEvent | undefined {
  const files = [...written, ...removed].filter((name) => !name.endsWith('.map'));
  if (files.length === 0) return undefined;
  const onlyStyles = removed.length === 0 && files.every((name) => name.endsWith('.css'));
  return onlyStyles ? { type: 'css', build, files } : { type: 'reload', build };
}

const HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };
const NO_PAGE = '<!doctype html><title>handset</title><p>There is no page yet: the first build has not succeeded.</p>';
