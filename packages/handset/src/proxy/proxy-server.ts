import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Browser } from 'playwright-core';
import type { Output } from '../build/output.ts';
import type { Device } from '../preview/devices.ts';
import { ProblemError } from '../problem.ts';
import { browserScript } from '../server/browser-script.ts';
import { isLoopback, namesThisServer, serverUrl } from '../server/loopback.ts';
import { serve } from '../server/serve.ts';
import { type AccessPolicy, createAccessPolicy } from './access-policy.ts';
import { type Resolve, startEgress } from './egress.ts';
import type { Exchange } from './exchange.ts';
import { openLivePage } from './live-page.ts';
import { PAGE_MEMORY_MB, watchPageMemory } from './page-memory.ts';
import { parsePhoneEvent } from './phone-event.ts';
import { createPhoneScript } from './phone-script.ts';
import { createPreviewFeed, previewPage } from './preview-page.ts';
import { readForm } from './read-form.ts';
import { createVisits } from './visits.ts';

export interface ProxyOptions {
  readonly browser: Browser;
  /** The files of public/ as they are now. */
  readonly outputs: () => ReadonlyMap<string, Output>;
  readonly device: Device;
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Serve `/preview`, which shows what each interaction cost. */
  readonly preview: boolean;
  /** Most visits at a time; each holds a page in Chromium. */
  readonly visits: number;
  /** Milliseconds without a request after which a visit ends. */
  readonly idle: number;
  readonly onExchange: (exchange: Exchange) => void;
  readonly onRefused: (url: string) => void;
  /** Told about what scripts of the pages threw and nobody caught. */
  readonly onPageError: (message: string) => void;
  readonly now?: () => number;
  /** How names are resolved; by the system, if it is not given. */
  readonly resolve?: Resolve;
}

export interface ProxyServer {
  readonly url: string;
  /** Whether only this machine can reach it. */
  readonly local: boolean;
  /** Number of pages that are alive. */
  readonly visitCount: number;
  /** Show what `outputs` has become: each visit goes on with a new page, and open previews load again. */
  refresh(): void;
  close(): Promise<void>;
}

const MAX_BODY = 64 * 1024;
const zip = promisify(gzip);

/**
 * Run an application's pages here and give phones finished documents. `GET /` begins a visit, `GET /v/<id>` shows it,
 * `POST /v/<id>/event` is a round trip (`GET`, where a link must do). Throws `port-in-use`.
 */
export async function startProxy(options: ProxyOptions): Promise<ProxyServer> {
  const { browser, outputs, device, host, onRefused, onPageError, now = () => performance.now() } = options;
  const phone = await createPhoneScript();
  const agent = browserScript('browser/page-agent.js');
  const allows = currentAccessPolicy(outputs);
  const egress = await startEgress({ allows, onRefused, resolve: options.resolve });
  const visits = createVisits({
    open: () => openLivePage({ browser, device, outputs, allows, egress: egress.url, agent, onRefused, onPageError }),
    read: (name) => outputs().get(name)?.read(),
    script: phone.text,
    limit: options.visits,
    idle: options.idle,
    now,
  });
  const feed = createPreviewFeed();
  const memory = await watchPageMemory(browser, (megabytes) =>
    onPageError(`a page took ${Math.round(megabytes)} MB and was ended; ${PAGE_MEMORY_MB} MB is the limit`),
  );
  let listening = '';
  const note = (exchange: Exchange): void => {
    options.onExchange(exchange);
    feed.send(exchange);
  };

  const sendDocument = async (request: IncomingMessage, response: ServerResponse, html: string): Promise<number> => {
    const packed = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '');
    const body = packed ? await zip(html) : Buffer.from(html);
    response.writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      'content-length': body.length,
      'content-security-policy': phone.policy,
      ...(packed ? { 'content-encoding': 'gzip' } : {}),
      ...HEADERS,
    });
    response.end(body);
    return body.length;
  };

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const start = now();
    const sentence = (status: number, text: string, headers = {}): void => {
      sendSentence(response, status, text, headers);
    };
    if (!namesThisServer(request, host, listening)) return sentence(403, 'This proxy answers to its own name only.');
    const address = request.url ?? '/';
    if (!URL.canParse(address, 'http://proxy')) return sentence(400, 'This is not an address.');
    const url = new URL(address, 'http://proxy');
    const isPost = request.method === 'POST';
    if (!isPost && request.method !== 'GET') return sentence(405, 'Use GET or POST.', { allow: 'GET, POST' });
    if (options.preview && !isPost) {
      if (url.pathname === '/preview') return previewPage(response, device);
      if (url.pathname === '/preview/feed') return feed.connect(request, response);
    }
    if (url.pathname === '/' && !isPost) {
      const visit = await visits.begin();
      return sentence(303, 'Your visit begins.', { location: `/v/${visit.id}` });
    }
    const [, id = '', action] = VISIT_PATH.exec(url.pathname) ?? [];
    if (id === '') return sentence(404, 'There is nothing here.');
    const visit = visits.find(id);
    if (!visit) return sentence(410, 'This visit has ended.');
    if (action === '/leave') {
      if (isPost) visits.leave(id);
      return void response.writeHead(isPost ? 204 : 405, HEADERS).end();
    }
    if (!action) {
      if (isPost) return sentence(405, 'Use GET.', { allow: 'GET' });
      const kind = visit.shown ? 'reload' : 'first load';
      const html = await visit.document();
      const bytesDown = await sendDocument(request, response, html);
      note({
        kind,
        visit: id,
        type: 'load',
        label: '',
        bytesUp: 0,
        bytesDown,
        documentBytes: Buffer.byteLength(html),
        milliseconds: now() - start,
      });
      return;
    }
    const read = isPost ? await readForm(request, MAX_BODY) : { form: new URLSearchParams(), bytes: 0 };
    if (!read) return sentence(413, 'That is more than a phone may send.', { connection: 'close' });
    // The address says which button was pressed; the body, which form it stands in.
    for (const [name, value] of url.searchParams) read.form.set(name, value);
    const event = parsePhoneEvent(read.form);
    if (!event) return sentence(400, 'This is not an event.');
    // What the phone's script sent is answered at once: it takes the address of the event out of the phone's history. Where
    // no script runs that costs a request more: without it, going back and loading again would repeat the event.
    const hasScript = event.scroll !== null;
    const { html = '', label, locals } = await visit.trip(event, hasScript);
    for (const action of locals) note({ ...FREE, kind: 'local', visit: id, type: 'shortcut', label: action });
    if (!hasScript) response.writeHead(303, { ...HEADERS, location: `/v/${id}` }).end();
    const bytesDown = hasScript ? await sendDocument(request, response, html) : 0;
    const bytesUp = read.bytes + url.search.length;
    note({
      kind: 'round trip',
      visit: id,
      type: event.type,
      label,
      bytesUp,
      bytesDown,
      documentBytes: Buffer.byteLength(html),
      milliseconds: now() - start,
    });
  };

  const handler = (request: IncomingMessage, response: ServerResponse): void => {
    const start = now();
    answer(request, response).catch((error: unknown) => {
      const [text = ''] = String(error instanceof Error ? error.message : error).split('\n');
      const [, visit = ''] = VISIT_PATH.exec((request.url ?? '').split('?', 1)[0] ?? '') ?? [];
      note({ ...FREE, kind: 'failed', visit, type: 'error', label: text, milliseconds: now() - start });
      if (response.headersSent) return void response.end();
      const way = visit ? `<p><a href="/v/${visit}">Back to the page</a></p>` : '';
      if (!(error instanceof ProblemError)) return void sendSentence(response, 500, text, {}, way);
      sendSentence(response, 503, `${text} ${error.problem.remedy}`, {}, way);
    });
  };
  const served = await serve(handler, host, options.port).catch(async (error: unknown) => {
    await Promise.all([egress.close(), visits.close(), memory.close()]);
    throw error;
  });
  listening = served.address;
  return {
    url: serverUrl(host, served.port),
    local: isLoopback(served.address),
    get visitCount() {
      return visits.count;
    },
    refresh() {
      visits.renew();
      feed.rebuilt();
    },
    async close() {
      feed.close();
      await served.close();
      await visits.close();
      await memory.close();
      await egress.close();
    },
  };
}

/** What config.xml allows, read again when it has changed. */
function currentAccessPolicy(outputs: ProxyOptions['outputs']): AccessPolicy {
  let known: { readonly of: Output | undefined; readonly policy: AccessPolicy } | undefined;
  return (url) => {
    const config = outputs().get('config.xml');
    if (!known || known.of?.hash !== config?.hash) {
      known = { of: config, policy: createAccessPolicy(Buffer.from(config?.read() ?? '').toString('utf8')) };
    }
    return known.policy(url);
  };
}

function sendSentence(response: ServerResponse, status: number, text: string, headers = {}, more = ''): void {
  response.writeHead(status, { 'content-type': 'text/html; charset=utf-8', ...HEADERS, ...headers });
  const safe = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  response.end(`<!DOCTYPE html><title>handset</title><p>${safe}</p>${more}<p><a href="/">Start anew</a></p>`);
}

const VISIT_PATH = /^\/v\/([0-9a-f]{32})(\/event|\/leave)?$/;
const FREE = { bytesUp: 0, bytesDown: 0, documentBytes: 0, milliseconds: 0 };
const HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' };
