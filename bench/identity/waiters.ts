import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConsentProvider } from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import type { TestPlatform } from '../../tests/support/platform-process.ts';
import { signed } from './cached-token.ts';

/** What became of many who asked at once for a token that was over. */
export interface WaitersResult {
  waiters: number;
  answered: number;
  /** Different tokens that they got. */
  tokens: number;
  /** Requests that the provider got for them. */
  refreshes: number;
}

/** Asks for one token once it is over, with so many requests at once, each on a connection of its own. */
export async function waitTogether(
  platform: TestPlatform,
  { provider, lifeSeconds }: { provider: ConsentProvider; lifeSeconds: number },
  { path, body, waiters }: { path: string; body: object; waiters: number },
): Promise<WaitersResult> {
  const ask = (request: Buffer): Promise<string> => tokenOf(platform, request);
  const [first] = await signed(platform, { path, body }, 1);
  if (first) await ask(first);
  await sleep(lifeSeconds * 1000);
  const before = provider.asked.length;
  const requests = await signed(platform, { path, body }, waiters);
  const answers = await Promise.allSettled(requests.map(ask));
  const tokens = answers.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  return { waiters, answered: tokens.length, tokens: new Set(tokens).size, refreshes: provider.asked.length - before };
}

/** The access token that one request is answered with, on a connection of its own. Rejects with what it is answered otherwise. */
async function tokenOf(platform: TestPlatform, request: Buffer): Promise<string> {
  const { hostname, port } = new URL(platform.ready.endpoint);
  const socket = connect(Number(port), hostname);
  try {
    await once(socket, 'connect');
    socket.write(request);
    let text = '';
    for await (const part of socket) {
      text += part;
      const token = /"accessToken":"([^"]+)"/.exec(text)?.[1];
      if (token !== undefined) return token;
      if (text.includes('\r\n\r\n') && !text.startsWith('HTTP/1.1 200')) break;
    }
    throw new Error(`the answer is ${text.slice(0, 400)}`);
  } finally {
    socket.destroy();
  }
}
