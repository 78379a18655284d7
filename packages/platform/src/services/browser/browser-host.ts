import { errors } from '@agentplatform/contract';
import type { Dispatcher } from 'undici';
import { list, object, storedText, text } from '../../kernel/stored-shape.ts';
import type { AskedSession } from './session-records.ts';

/** What the program inside a session is told of its browser. Absent members are as usual. */
export interface HostSettings {
  viewPort: { width: number; height: number };
}

/** As the program inside has it (`images/browser/host/settings.mjs`): a session of this size finds its browser running. */
export const USUAL_VIEW_PORT = { width: 1456, height: 819 };

/** One open page of the browser. */
export interface OpenPage {
  /** Of the browser's protocol: its `targetId`. */
  id: string;
  title: string;
  url: string;
}

const PAGES = object({ pages: list(object<OpenPage>({ id: text, title: text, url: text })) });
const ORIGINS = object({ origins: list(text) });
const UPLOADED = object({ path: text });
const MAX_ANSWER_BYTES = 1 * 2 ** 20;
const START_MS = 60_000;
const ANSWER_MS = 10_000;

/**
 * The program inside a session (`images/browser/host`). It shares the sandbox with the browser, so nothing here trusts what it says beyond
 * the session.
 */
export class BrowserHost {
  readonly #connection: Dispatcher;

  constructor(connection: Dispatcher) {
    this.#connection = connection;
  }

  /** Has Chromium run with what was asked for; at once where it does already. Rejects with InternalServerException. */
  async start(asked: AskedSession, signal: AbortSignal): Promise<void> {
    const { width, height } = asked.viewPort;
    if (width === USUAL_VIEW_PORT.width && height === USUAL_VIEW_PORT.height) return;
    const settings: HostSettings = { viewPort: { width, height } };
    await this.#ask('did not start', {
      method: 'PUT',
      path: '/start',
      body: JSON.stringify(settings),
      headers: { 'content-type': 'application/json' },
      headersTimeout: START_MS,
      signal,
    });
  }

  /** Its open pages, the one in front first. Rejects with InternalServerException while it starts again. */
  async pages(signal: AbortSignal): Promise<OpenPage[]> {
    const request = { method: 'GET' as const, path: '/pages', headersTimeout: ANSWER_MS, signal };
    return storedText(PAGES, await this.#ask('does not list its pages', request)).pages;
  }

  /** Origins that have something in local storage. Rejects with InternalServerException while the browser starts again. */
  async origins(signal: AbortSignal): Promise<string[]> {
    const request = { method: 'GET' as const, path: '/origins', headersTimeout: ANSWER_MS, signal };
    return storedText(ORIGINS, await this.#ask('does not say what it keeps', request)).origins;
  }

  /** Puts a file on the session's disk and gives its path there. Rejects with InternalServerException. */
  async upload(name: string, content: Uint8Array, signal: AbortSignal): Promise<string> {
    const path = `/uploads?name=${encodeURIComponent(name)}`;
    const request = { method: 'PUT' as const, path, body: content, headersTimeout: START_MS, signal };
    return storedText(UPLOADED, await this.#ask('does not take the file', request)).path;
  }

  async #ask(failed: string, request: Dispatcher.RequestOptions): Promise<string> {
    const { statusCode, body } = await this.#connection.request(request);
    const answer = await limited(body);
    if (statusCode >= 300) throw errors.internal(`The browser of the session ${failed}: ${answer.slice(0, 500)}`);
    return answer;
  }
}

async function limited(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MAX_ANSWER_BYTES) throw errors.internal('The answer of the session is too large.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
