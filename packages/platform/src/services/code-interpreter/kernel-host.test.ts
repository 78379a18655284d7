import { MockAgent } from 'undici';
import { describe, expect, it } from 'vitest';
import { type HostEvent, KernelHost } from './kernel-host.ts';

const MIB = 2 ** 20;
const DONE = '{"event":"done","ok":true,"exitCode":0,"seconds":1,"note":null,"cut":{"stdout":0,"stderr":0,"rich":0}}\n';
const line = (text: string): string => `${JSON.stringify({ event: 'output', stream: 'stdout', text })}\n`;

/** A session whose server answers a call with `body`. */
async function eventsOf(body: string): Promise<HostEvent[]> {
  const agent = new MockAgent();
  agent.disableNetConnect();
  const pool = agent.get('http://session');
  pool.intercept({ path: '/execute', method: 'POST' }).reply(200, body);
  try {
    const host = new KernelHost(pool, new AbortController().signal);
    const events: HostEvent[] = [];
    for await (const event of await host.stream('/execute', { code: '1' })) events.push(event);
    return events;
  } finally {
    await agent.close();
  }
}

describe('what a session says of a call', () => {
  it('is one event a line, wherever the parts end', async () => {
    const events = await eventsOf(line('ä'.repeat(100_000)) + DONE);
    expect(events).toMatchObject([
      { event: 'output', text: 'ä'.repeat(100_000) },
      { event: 'done', ok: true },
    ]);
  });

  it('may be large, and has an end', async () => {
    const part = line('x'.repeat(MIB));
    const outcome = (body: string): Promise<number | string> =>
      eventsOf(body).then(
        (events) => events.length,
        (error: { kind: string }) => error.kind,
      );
    expect(await outcome(part.repeat(60) + DONE)).toBe(61);
    expect(await outcome(part.repeat(65) + DONE)).toBe('too-large');
    expect(await outcome(line('x'.repeat(21 * MIB)) + DONE)).toBe('too-large');
  });

  it('that is no JSON breaks the call', async () => {
    await expect(eventsOf(`nonsense\n${DONE}`)).rejects.toThrow(SyntaxError);
  });
});
