import { once } from 'node:events';
import pino from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { systemClock } from '../../../kernel/clock.ts';
import type { RecordedEntry } from './recorded-entry.ts';
import { Recorder, type RecorderDeps } from './recorder.ts';

/** The last thing that is asked before what happens is recorded. */
const LISTENS = 'Target.setDiscoverTargets';

let browser: WebSocketServer;

beforeEach(async () => {
  browser = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  browser.on('connection', (socket: WebSocket) =>
    socket.on('message', (text) => {
      const { id, method } = JSON.parse(String(text));
      socket.send(JSON.stringify({ id, result: {} }));
      browser.emit(method, socket);
    }),
  );
  await once(browser, 'listening');
});

afterEach(() => {
  for (const socket of browser.clients) socket.terminate();
  browser.close();
});

/** Records until the session is over; the browser goes first, and comes again where the session goes on. */
async function recorded(sessionGoesOn: boolean): Promise<RecordedEntry[]> {
  const address = browser.address();
  const port = typeof address === 'object' ? address?.port : 0;
  const exited = Promise.withResolvers<void>();
  const connection = { request: () => Promise.reject(new Error('no pages')) };
  const sandbox = { address: () => ({ host: '127.0.0.1', port }), exited: exited.promise };
  const entries: RecordedEntry[] = [];
  const recorder = new Recorder({
    lease: { connection, sandbox },
    store: async (_name: string, more: readonly RecordedEntry[]) => void entries.push(...more),
    ...{ clock: systemClock, log: pino({ enabled: false }) },
  } as unknown as RecorderDeps);
  const listened = once(browser, LISTENS);
  const done = recorder.run();
  const [socket]: WebSocket[] = await listened;
  if (!socket) throw new Error('nobody records');
  const gone = once(socket, 'close');
  socket.close();
  await gone;
  if (sessionGoesOn) await expect.poll(() => entries.length, { timeout: 30_000 }).toBeGreaterThan(0);
  exited.resolve();
  await done;
  return entries;
}

it('says that a browser broke down, and not that one ended with its session', async () => {
  expect(await recorded(true)).toMatchObject([
    { kind: 'console', level: 'error', text: 'The connection with the browser ended.' },
  ]);
  expect(await recorded(false)).toEqual([]);
}, 60_000);
