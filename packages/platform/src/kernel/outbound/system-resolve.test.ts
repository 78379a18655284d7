import { describe, expect, it } from 'vitest';
import { FakeClock } from '../fake-clock.ts';
import { createAddressPolicy } from './address-policy.ts';
import { createGuardedResolve, type ResolvedAddress } from './resolver.ts';
import { createSystemResolve } from './system-resolve.ts';

const FOUND: ResolvedAddress[] = [{ address: '192.0.2.1', family: 4 }];

/** A machine whose name servers know no name; `ends` has what ends each call of getaddrinfo. */
function machine(resolvConf: string, code = 'ENOTFOUND') {
  const ends: { name: string; end: () => void }[] = [];
  const resolve = createSystemResolve({
    ask: async (hostname) => Promise.reject(Object.assign(new Error(`no ${hostname}`), { code })),
    lookup: (name) => new Promise((done) => ends.push({ name, end: () => done(FOUND) })),
    read: async (path) => (path === '/etc/resolv.conf' ? resolvConf : ''),
  });
  return { resolve, ends, names: () => ends.map(({ name }) => name) };
}

const SEARCH = 'nameserver 192.0.2.53\nsearch example.com\n';
const NO_SEARCH = 'nameserver 192.0.2.53\nsearch .\n';

describe('what the name servers do not know', () => {
  it.each([
    ['printer', NO_SEARCH],
    ['printer.local', NO_SEARCH],
    ['wiki.corp', SEARCH],
    ['wiki.corp', 'domain example.com'],
  ])('is asked of the machine where that can know it: %s', async (name, conf) => {
    const { resolve, ends } = machine(conf);
    const found = resolve(name);
    await expect.poll(() => ends.length).toBe(1);
    ends[0]?.end();
    expect(await found).toEqual(FOUND);
  });

  it.each([
    ['evil.example', NO_SEARCH],
    ['evil.example.', SEARCH],
  ])('takes no thread where it cannot: %s', async (name, conf) => {
    const { resolve, ends } = machine(conf);
    await expect(resolve(name)).rejects.toMatchObject({ code: 'ENOTFOUND' });
    expect(ends).toEqual([]);
  });

  it('is asked of the machine where no name server can be reached', async () => {
    const { resolve, ends } = machine(NO_SEARCH, 'ECONNREFUSED');
    const found = resolve('wiki.corp');
    await expect.poll(() => ends.length).toBe(1);
    ends[0]?.end();
    await found;
  });

  it('is asked once for all who want it', async () => {
    const { resolve, ends, names } = machine(SEARCH);
    const all = Array.from({ length: 300 }, () => resolve('printer'));
    await expect.poll(() => ends.length).toBe(1);
    ends[0]?.end();
    expect(await Promise.all(all)).toEqual(all.map(() => FOUND));
    const again = resolve('printer');
    await expect.poll(names).toEqual(['printer', 'printer']);
    ends[1]?.end();
    await again;
  });

  it('keeps nobody waiting for names of which everybody has given up', async () => {
    const { resolve, ends, names } = machine(SEARCH);
    const clock = new FakeClock();
    const guarded = createGuardedResolve({ resolve, addresses: createAddressPolicy(), clock, timeoutMs: 10_000 });
    const attack = Promise.allSettled(Array.from({ length: 300 }, (_, n) => guarded(`a${n}.evil.example`)));
    await expect.poll(names).toEqual(['a0.evil.example']);
    await expect(resolve('printer')).rejects.toThrow('already waiting');
    await clock.advance(10_000);
    await attack;
    const printer = resolve('printer');
    ends[0]?.end();
    await expect.poll(names).toEqual(['a0.evil.example', 'printer']);
    ends[1]?.end();
    expect(await printer).toEqual(FOUND);
  });
});
