import { errors } from '@agentplatform/contract';
import type { Dispatcher } from 'undici';
import type { AskedSession } from './session-records.ts';

/** What the program inside a session is told of its browser. Absent members are as usual. */
export interface HostSettings {
  viewPort: { width: number; height: number };
}

/** As the program inside has it (`images/browser/host/settings.mjs`): a session of this size finds its browser running. */
export const USUAL_VIEW_PORT = { width: 1456, height: 819 };

const MAX_ANSWER_BYTES = 64 * 2 ** 10;
const START_MS = 60_000;

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
    const { statusCode, body } = await this.#connection.request({
      method: 'PUT',
      path: '/start',
      body: JSON.stringify(settings),
      headers: { 'content-type': 'application/json' },
      headersTimeout: START_MS,
      signal,
    });
    const text = await limited(body);
    if (statusCode >= 300) throw errors.internal(`The browser of the session did not start: ${text.slice(0, 500)}`);
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
