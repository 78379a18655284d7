import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

interface Report {
  open: Record<string, string>;
  held: Record<string, string>;
  callers: Record<'open' | 'held', Record<string, number>>;
  reachedInside: string[];
  overtaken: { threads: boolean; guard: boolean };
}

const REFUSED = 'ADDRESS_REFUSED';
const root = process.getuid?.() === 0;

/** The attempts run in a network of their own, whose resolver is a name server that changes its answers. */
describe('names whose addresses change', () => {
  let dir: string;
  let report: Report;

  beforeAll(async () => {
    if (!root) return;
    dir = await mkdtemp(join(tmpdir(), 'dns-rebinding-'));
    await writeFile(join(dir, 'resolv.conf'), 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n');
    await writeFile(join(dir, 'hosts'), '127.0.0.1 localhost\n::1 localhost\n');
    const script = [
      `mount --bind ${dir}/resolv.conf /etc/resolv.conf`,
      `mount --bind ${dir}/hosts /etc/hosts`,
      'ip link set lo up',
      ...['1.2.3.4', '169.254.169.254', '10.0.0.1'].map((address) => `ip addr add ${address}/32 dev lo`),
      // Without one of its own the machine would not ask for addresses of version 6.
      'ip -6 addr add 2001:db8::1/128 dev lo',
      'exec "$0" "$1"',
    ];
    const child = join(import.meta.dirname, 'dns/rebinding-child.ts');
    const args = ['--mount', '--net', 'sh', '-ec', script.join('\n'), process.execPath, child];
    const { stdout } = await promisify(execFile)('unshare', args, { timeout: 120_000, killSignal: 'SIGKILL' });
    report = JSON.parse(stdout);
  });
  afterAll(() => (dir ? rm(dir, { recursive: true, force: true }) : undefined));

  it('lead inside where nothing guards', (context) => {
    if (!root) return context.skip('needs root, for a network of its own');
    const { redirect, flip, ...names } = report.open;
    expect(flip).toBe('outside then inside');
    expect(redirect).toBe('inside');
    expect(new Set(Object.values(names))).toEqual(new Set(['inside']));
  });

  it('lead nowhere inside from the platform: what was judged is what is connected to, at each redirect', (context) => {
    if (!root) return context.skip('needs root, for a network of its own');
    const { public: outside, mixed, late, ...held } = report.held;
    expect(outside).toBe('outside');
    // Of several addresses those that may be called are.
    expect(mixed).toBe('outside');
    expect([REFUSED, 'NAME_NOT_RESOLVED']).toContain(late);
    const expected: Record<string, string> = {
      flip: `outside then ${REFUSED}`,
      'flip behind a redirect': `outside then ${REFUSED}`,
      'flip between check and call': `allowed then ${REFUSED}`,
      'flop, twenty at once': `${REFUSED}, outside`,
    };
    for (const [name, came] of Object.entries(held)) expect(came, name).toBe(expected[name] ?? REFUSED);
    expect(Object.keys(report.held).length).toBeGreaterThan(40);
    expect(report.reachedInside).toEqual([]);
  });

  it('lead nowhere inside from whoever calls what a user names', (context) => {
    if (!root) return context.skip('needs root, for a network of its own');
    const { open, held } = report.callers;
    // The control: where the operator opened the inside, each of them gets there.
    for (const [caller, times] of Object.entries(open)) expect(times, caller).toBeGreaterThan(4);
    expect(Object.keys(open)).toHaveLength(3);
    expect(new Set(Object.values(held))).toEqual(new Set([0]));
  });

  it('that no server answers for keep nobody else from resolving theirs', (context) => {
    if (!root) return context.skip('needs root, for a network of its own');
    expect(report.overtaken).toEqual({ threads: false, guard: true });
  });
});
