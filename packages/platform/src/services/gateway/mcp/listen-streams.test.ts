import { expect, it } from 'vitest';
import { ListenStreams } from './listen-streams.ts';

const LISTEN = { jsonrpc: '2.0', id: 5, method: 'subscriptions/listen' };
const request = (): Request => new Request('http://here/mcp', { method: 'POST', body: JSON.stringify(LISTEN) });

/** A stream that lasts until its client goes, or the request is ended. */
async function open({ signal }: Request): Promise<Response> {
  const over = new AbortController();
  const stream = new ReadableStream({
    start: (controller) => signal.addEventListener('abort', () => controller.close(), { signal: over.signal }),
    cancel: () => over.abort(),
  });
  return new Response(stream);
}

it('one caller has a share of the streams, which is his again when one is closed', async () => {
  const listens = new ListenStreams();
  const serve = (owner: string): Promise<Response> => listens.serve(request(), LISTEN, owner, open);
  const streams = await Promise.all(Array.from({ length: 64 }, () => serve('alice')));
  expect(await (await serve('alice')).json()).toMatchObject({ id: 5, error: { code: -32603 } });
  const bob = await serve('bob');
  await streams[0]?.body?.cancel();
  const again = await serve('alice');
  listens.end();
  for (const one of [bob, again]) expect(await one.text()).toBe('');
});

it('what fails takes no share', async () => {
  const listens = new ListenStreams();
  const fails = (): Promise<Response> =>
    listens.serve(request(), LISTEN, 'alice', async () => {
      throw new Error('closed');
    });
  for (let i = 0; i < 65; i++) await expect(fails()).rejects.toThrow('closed');
});

it('knows which message asks for one', () => {
  const listens = new ListenStreams();
  expect(listens.isOne(LISTEN)).toBe(true);
  for (const other of [{ ...LISTEN, method: 'tools/call' }, [LISTEN], undefined, 'text'])
    expect(listens.isOne(other)).toBe(false);
});
