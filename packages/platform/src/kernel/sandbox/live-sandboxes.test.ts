import { describe, expect, it } from 'vitest';
import { LiveSandboxes } from './live-sandboxes.ts';
import type { Sandbox, SandboxExit, SandboxProvider, SandboxSpec } from './sandbox.ts';

/** A provider whose sandboxes are made and end when the test says so. */
function fake() {
  const made: { resolve(sandbox: Sandbox): void; reject(error: Error): void }[] = [];
  const sandbox = (id: string) => {
    let end = (): void => undefined;
    const exited = new Promise<SandboxExit>((resolve) => {
      end = () => resolve({ exitCode: 0, outOfMemory: false });
    });
    return { sandbox: { id, exited } as unknown as Sandbox, end };
  };
  const provider = {
    name: 'oci',
    create: () => new Promise<Sandbox>((resolve, reject) => made.push({ resolve, reject })),
    async *reattach() {
      yield survivor.sandbox;
    },
  } as unknown as SandboxProvider;
  const survivor = sandbox('survivor');
  return { live: new LiveSandboxes(provider), made, sandbox, survivor };
}

const spec = (id: string) => ({ id }) as SandboxSpec;
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('sandboxes that live', () => {
  it('are known from the moment they are being made to their end', async () => {
    const { live, made, sandbox } = fake();
    expect(live.has('a')).toBe(false);
    const creating = live.create(spec('a'));
    expect(live.has('a')).toBe(true);
    const found = live.find('a');
    const { sandbox: one, end } = sandbox('a');
    made[0]?.resolve(one);
    expect(await creating).toBe(one);
    expect(await found).toBe(one);
    end();
    await settled();
    expect(live.has('a')).toBe(false);
    expect(await live.find('a')).toBeUndefined();
  });

  it('are none when they could not be made', async () => {
    const { live, made } = fake();
    const creating = live.create(spec('a'));
    const found = live.find('a');
    made[0]?.reject(new Error('no room'));
    await expect(creating).rejects.toThrow('no room');
    expect(await found).toBeUndefined();
    expect(live.has('a')).toBe(false);
  });

  it('keep their id when another one asks for it and is refused', async () => {
    const { live, made, sandbox } = fake();
    const first = live.create(spec('a'));
    made[0]?.resolve(sandbox('a').sandbox);
    await first;
    const second = live.create(spec('a'));
    made[1]?.reject(new Error('exists already'));
    await expect(second).rejects.toThrow('exists already');
    expect(live.has('a')).toBe(true);
  });

  it('are those, too, that an earlier server left', async () => {
    const { live, survivor } = fake();
    for await (const one of live.reattach()) expect(one.id).toBe('survivor');
    expect(live.has('survivor')).toBe(true);
    survivor.end();
    await settled();
    expect(live.has('survivor')).toBe(false);
  });
});
