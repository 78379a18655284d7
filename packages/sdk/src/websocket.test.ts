import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { AgentPlatformApp } from './app.ts';
import { getContext } from './context.ts';
import type { RunningApp } from './serve.ts';

let running: RunningApp | undefined;
afterEach(() => running?.close());

async function start(app: AgentPlatformApp): Promise<string> {
  running = await app.run({ port: 0, host: '127.0.0.1' });
  return `${running.url.replace('http', 'ws')}/ws`;
}

async function open(url: string, headers: Record<string, string> = {}): Promise<WebSocket> {
  const socket = new WebSocket(url, { headers });
  await once(socket, 'open');
  return socket;
}

describe('a WebSocket handler', () => {
  it('talks both ways, with its context', async () => {
    const app = new AgentPlatformApp();
    app.websocket((socket, context) => {
      expect(getContext()).toBe(context);
      socket.on('message', (data) => socket.send(`${context.sessionId} ${data}`));
    });
    const socket = await open(await start(app), { 'x-amzn-bedrock-agentcore-runtime-session-id': 's-1' });
    socket.send('hi');
    expect(String((await once(socket, 'message'))[0])).toBe('s-1 hi');
    await running?.close();
    expect((await once(socket, 'close'))[0]).toBe(1001);
  });

  it('that fails closes with 1011 and is reported', async () => {
    const reported: unknown[] = [];
    const app = new AgentPlatformApp(undefined, { onError: (_message, error) => reported.push(error) });
    app.websocket(async () => {
      throw new Error('boom');
    });
    const socket = await open(await start(app));
    expect((await once(socket, 'close'))[0]).toBe(1011);
    expect(reported).toEqual([new Error('boom')]);
  });

  it('is told when its caller goes away, and takes no larger messages than the platform', async () => {
    const app = new AgentPlatformApp();
    const aborted: Promise<unknown>[] = [];
    app.websocket((_socket, { signal }) => void aborted.push(once(signal, 'abort')));
    const url = await start(app);
    (await open(url)).terminate();
    const large = await open(url);
    large.send(Buffer.alloc(10 * 1024 * 1024 + 1));
    expect((await once(large, 'close'))[0]).toBe(1009);
    await Promise.all(aborted);
    expect(aborted).toHaveLength(2);
  });

  it('is at /ws alone, and without one there is none', async () => {
    const app = new AgentPlatformApp();
    app.websocket(() => undefined);
    const url = await start(app);
    await expect(open(`${url}/other`)).rejects.toThrow('404');
    await running?.close();
    const none = new AgentPlatformApp(() => 'hi');
    await expect(open(await start(none))).rejects.toThrow('404');
  });
});
