import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../clock.ts';
import type { Sandbox, SandboxSpec } from '../sandbox.ts';
import { lacksGvisor, RUNSC } from '../testing/gvisor.ts';
import { busyboxImage } from '../testing/rootfs.ts';
import { type SpecChange, smallSpec } from '../testing/small-spec.ts';
import { testStage } from '../testing/test-stage.ts';
import { until } from '../testing/until.ts';
import { OciProvider } from './oci-provider.ts';

/** Says again and again what it has known since its start, and what it finds now. */
const AGENT = `b="busybox base64"; BORN=$(head -c 8 /dev/urandom | $b); while true; do
echo "born=$BORN|random=$(head -c 8 /dev/urandom | $b)|now=$(busybox date +%s)|name=$(hostname)|key=$(cat /key)|disk=$(cat /tmp/* | tr '\\n' ' ')|hosts=$(cat /etc/hosts | tr '\\n' ' ')"
sleep 0.2; done`;
/** Nothing ever comes on a connection of its own. */
const CONNECTED =
  '(sleep 600 | nc -l -p 9000) & (echo connected; sleep 600) | until nc 127.0.0.1 9000; do sleep 0.1; done';

const lacking = lacksGvisor();
if (lacking) it('snapshots of sandboxes on gVisor', (context) => context.skip(lacking));
else
  describe('snapshots of sandboxes on gVisor', () => {
    let dir: string;
    let provider: OciProvider;
    let specify: (id: string, change?: SpecChange) => SandboxSpec;

    beforeEach(async () => {
      dir = await mkdtemp(join(tmpdir(), 'oci-snapshot-'));
      provider = open();
      const image = await busyboxImage(join(dir, 'image'));
      specify = (id, change = {}) =>
        smallSpec(image, id, {
          snapshot: true,
          command: ['/bin/sh', '-c', AGENT],
          files: [{ path: '/key', text: `key of ${id}` }],
          ...change,
        });
    });
    afterEach(async () => {
      for await (const sandbox of provider.reattach()) await sandbox.stop();
      await provider.sweep(new Set());
      await provider.close();
      await rm(dir, { recursive: true, force: true });
    });

    const open = (snapshotBytes = 2 ** 30): OciProvider =>
      new OciProvider({
        dataDir: join(dir, 'data'),
        stage: testStage,
        clock: systemClock,
        log: pino({ level: 'silent' }),
        runtime: RUNSC,
        snapshotBytes,
      });
    const kept = (): Promise<string[]> => readdir(join(dir, 'data/snapshots'));

    /** Leaves a file with that text, and gives what the agent says once it has seen it. */
    async function write(sandbox: Sandbox, text: string): Promise<Record<string, string>> {
      expect(await (await sandbox.exec(['/bin/sh', '-c', `echo ${text} > /tmp/${text}`])).exited).toBe(0);
      await until(async () => (await ask(sandbox))?.disk?.includes(text) === true);
      return (await ask(sandbox)) ?? {};
    }

    /** One that has warmed up, which leaves a file. */
    async function warm(id: string): Promise<{ sandbox: Sandbox; told: Record<string, string> }> {
      const sandbox = await provider.create(specify(id));
      return { sandbox, told: await write(sandbox, 'warm') };
    }

    it('copies go on where it was, each with its own entropy, clock, address, name, keys and disk', async () => {
      const { sandbox, told } = await warm('first-of-them');
      expect([sandbox.copied, told.key, told.disk]).toEqual([undefined, 'key of first-of-them', 'warm ']);
      await sandbox.snapshot?.();
      await sandbox.stop();
      const copies = [await provider.create(specify('one')), await provider.create(specify('another-with-more'))];
      const said: Record<string, string>[] = [];
      for (const copy of copies) {
        // What one writes the other does not see.
        said.push(await write(copy, copy.id));
        expect(Math.abs(Number(said.at(-1)?.now) - Date.now() / 1000)).toBeLessThan(60);
      }
      expect(copies.map(({ copied }) => copied !== undefined)).toEqual([true, true]);
      expect(said.map(({ born }) => born)).toEqual([told.born, told.born]);
      expect(new Set([told.random, ...said.map(({ random }) => random)]).size).toBe(3);
      expect(said.map(({ name, key, disk }) => [name, key, disk])).toEqual([
        ['one', 'key of one', 'one warm '],
        ['another-with-more', 'key of another-with-more', 'another-with-more warm '],
      ]);
      const addresses = copies.map((copy) => copy.address(8080).host);
      expect(new Set([sandbox.address(8080).host, ...addresses]).size).toBe(3);
      for (const [at, { hosts }] of said.entries()) expect(hosts).toContain(`${addresses[at]} ${copies[at]?.id}`);
      for (const copy of copies) await copy.stop();
    });

    it('none is taken of one with a connection, and none is left of the attempt', async () => {
      const sandbox = await provider.create(specify('connected', { command: ['/bin/sh', '-c', CONNECTED] }));
      await until(async () => (await sandbox.tail()).includes('connected'), 30_000);
      await expect(sandbox.snapshot?.()).rejects.toMatchObject({ reason: 'refused' });
      expect(await kept()).toEqual([]);
      await sandbox.stop();
    });

    it('one of another specification is no copy, nor one for which there is none', async () => {
      const { sandbox } = await warm('template');
      await sandbox.snapshot?.();
      await sandbox.stop();
      const other = await provider.create(specify('other', { env: { OTHER: 'yes' } }));
      const unasked = await provider.create({ ...specify('unasked'), snapshot: undefined });
      expect([other.copied, unasked.copied, unasked.snapshot]).toEqual([undefined, undefined, undefined]);
      await other.stop();
      await unasked.stop();
    });

    it('one that cannot be restored is forgotten, and the sandbox begins anew', async () => {
      const { sandbox, told } = await warm('template');
      await sandbox.snapshot?.();
      await sandbox.stop();
      const [key = ''] = await kept();
      await writeFile(join(dir, 'data/snapshots', key, 'state/checkpoint.img'), 'not what it was');
      const anew = await provider.create(specify('anew'));
      expect(anew.copied).toBeUndefined();
      await until(async () => (await ask(anew)) !== undefined);
      expect((await ask(anew))?.born).not.toBe(told.born);
      expect(await kept()).toEqual([]);
      await anew.stop();
    });

    it('outlive the server, and are bounded: the one that was used longest ago goes', async () => {
      const { sandbox } = await warm('template');
      await sandbox.snapshot?.();
      await sandbox.stop();
      await provider.close();
      provider = open(1);
      const next = await provider.create(specify('next'));
      expect(next.copied).toBeDefined();
      await expect(next.snapshot?.()).rejects.toThrow(/more than the 1 that are kept/);
      await next.copied?.forget();
      expect(await kept()).toEqual([]);
      await next.stop();
    });
  });

/** What the agent has said last; undefined before its first word. */
async function ask(sandbox: Sandbox): Promise<Record<string, string> | undefined> {
  const line = (await sandbox.tail()).split('\n').findLast((one) => one.startsWith('born=') && one.includes('|hosts='));
  return line === undefined ? undefined : Object.fromEntries(line.split('|').map((field) => field.split('=', 2)));
}
