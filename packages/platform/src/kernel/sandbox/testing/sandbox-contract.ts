import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCommand } from '../../processes/index.ts';
import { leaseFile } from '../host/lease-file.ts';
import type { PreparedImage } from '../host-stage.ts';
import {
  type ExecHandle,
  NEVER_RAN,
  type Sandbox,
  type SandboxProvider,
  type SandboxSpec,
  type Volume,
} from '../sandbox.ts';
import { ask } from './ask.ts';
import { type SpecChange, smallSpec } from './small-spec.ts';
import { testStage } from './test-stage.ts';
import { until } from './until.ts';

export interface ContractFixture {
  provider(dataDir: string): SandboxProvider;
  /** Has /bin/sh and /bin/busybox. */
  image(dir: string): Promise<PreparedImage>;
  /** As `sharedVolume` makes it; absent where sandboxes have no volumes. */
  volume?(dir: string): Promise<Volume>;
  /** More places of the host where something of a sandbox of that data directory is written. */
  places?(dataDir: string): string[];
}

const MIB = 1024 * 1024;
/** Of the lease of which a sandbox ends, long enough for a machine that is busy. */
const HELD_MS = 1500;

/** Runs a command to its end and returns all that it said. */
export async function runIn(
  sandbox: Sandbox,
  command: string[],
  input = '',
): Promise<{ code: number; stdout: string; stderr: string }> {
  return finish(await sandbox.exec(command), input);
}

export async function finish(
  handle: ExecHandle,
  input = '',
): Promise<{ code: number; stdout: string; stderr: string }> {
  handle.stdin.end(input);
  const [stdout, stderr, code] = await Promise.all([text(handle.stdout), text(handle.stderr), handle.exited]);
  return { code, stdout, stderr };
}

/** What every sandbox provider must do. What a provider cannot enforce it must declare; it is then held to the declaration. */
export function sandboxContract(name: string, fixture: ContractFixture): void {
  describe(`sandbox contract: ${name}`, () => {
    let dir: string;
    let image: PreparedImage;
    let volume: Volume | undefined;
    let provider: SandboxProvider;
    let unenforced: string[] = [];
    let serial = 0;

    const spec = (script: string, change: SpecChange = {}): SandboxSpec =>
      smallSpec(image, `c${serial++}`, { command: ['/bin/sh', '-c', script], ...change });
    const create = (script: string, change: SpecChange = {}): Promise<Sandbox> => provider.create(spec(script, change));

    beforeAll(async () => {
      dir = await mkdtemp(join(tmpdir(), 'sandbox-contract-'));
      image = await fixture.image(dir);
      testStage.nameImage(image);
      volume = await fixture.volume?.(dir);
      provider = fixture.provider(join(dir, 'data'));
      const report = await provider.probe();
      expect(report.missing).toEqual([]);
      unenforced = report.unenforced ?? [];
    });

    afterAll(async () => {
      await provider.sweep(new Set());
      await provider.close();
      await rm(dir, { recursive: true, force: true });
    });

    it('runs the command with its environment over the image, and reports how it ended', async () => {
      const sandbox = await create('echo "$FROM_IMAGE $GIVEN $SECRET_OF_SERVER."; exit 42', {
        env: { GIVEN: 'a=b c' },
      });
      expect(await sandbox.exited).toEqual({ exitCode: 42, outOfMemory: false });
      expect(await sandbox.tail()).toBe('yes a=b c .\n');
      await sandbox.stop();
    });

    it('gives the first process what is secret, and writes it down nowhere', async () => {
      const value = `s3cret-${process.pid} 'quoted' "$HOME" \\ \`id\`\nand 'more' ü`;
      const plain = `pl41n-${process.pid}`;
      const sandbox = await create('printf "%s<%s>\\n" "$KEY" "$PLAIN"; exec sleep 60', {
        env: { PLAIN: plain },
        secretEnv: { KEY: value },
      });
      await until(async () => (await sandbox.tail()) === `${value}<${plain}>\n`);
      // A command beside it has what is not secret.
      const beside = await runIn(sandbox, ['/bin/sh', '-c', 'echo "$PLAIN:$KEY"']);
      expect(beside.stdout).toBe(`${plain}:\n`);
      const dataDir = join(dir, 'data');
      const places = [dataDir, ...(fixture.places?.(dataDir) ?? [])];
      const holding = async (text: string): Promise<string[]> => {
        const argv: [string, ...string[]] = ['grep', '-rlasF', '--devices=skip', text, ...places];
        const { stdout } = await runCommand(argv, { timeoutMs: 60_000 });
        // It wrote it to its log itself.
        return stdout.split('\n').filter((file) => file !== '' && !/\/(log|container\.log)$/.test(file));
      };
      // The control: what is not secret is found.
      expect(await holding(plain)).not.toEqual([]);
      expect(await holding(`s3cret-${process.pid}`)).toEqual([]);
      await sandbox.stop();
    });

    it('reports a signal as 128 and its number', async () => {
      const sandbox = await create('/bin/sh -c "kill -SEGV \\$\\$"; exit $?');
      expect((await sandbox.exited).exitCode).toBe(139);
      await sandbox.stop();
    });

    it('refuses a command that does not exist, and leaves nothing behind', async () => {
      const bad = { ...spec(''), command: ['/no/such/program'] };
      await expect(provider.create(bad)).rejects.toMatchObject({
        name: 'SandboxError',
        reason: 'command',
        message: expect.stringContaining('/no/such/program'),
      });
      expect(await provider.sweep(new Set())).not.toContain(bad.id);
    });

    it('refuses impossible specifications with the field that is wrong', async () => {
      const cases: [SpecChange, string][] = [
        [{ id: 'UPPER' }, 'id'],
        [{ id: '' }, 'id'],
        [{ id: '../../etc' }, 'id'],
        [{ limits: { ...spec('').limits, memoryBytes: 0 } }, 'memoryBytes'],
        [{ limits: { ...spec('').limits, cpu: Number.NaN } }, 'cpu'],
        [{ limits: { ...spec('').limits, pids: 1.5 } }, 'pids'],
        [{ command: [] }, 'run'],
        [{ command: ['a\0b'] }, 'NUL'],
        [{ env: { 'A=B': 'c' } }, 'env'],
        [{ secretEnv: { A: 'b\0c' } }, 'env'],
        [{ network: { egress: 'none', allowCidrs: ['10.0.0.0/8; drop'], hostPorts: [] } }, 'allowCidrs'],
        [{ network: { egress: 'none', allowCidrs: [], hostPorts: [70_000] } }, 'hostPorts'],
        ...[
          { host: 'a\n127.0.0.1 b', addresses: ['10.1.2.3'], port: 80 },
          { host: 'a', addresses: ['127.0.0.2'], port: 80 },
          { host: 'a', addresses: ['169.254.169.254'], port: 80 },
          { host: 'a', addresses: ['::1'], port: 80 },
          { host: 'a', addresses: [], port: 80 },
          { host: 'a', addresses: ['10.1.2.3'], port: 0 },
        ].map((endpoint): [SpecChange, string] => [
          { network: { egress: 'none', allowCidrs: [], hostPorts: [], endpoints: [endpoint] } },
          'endpoints',
        ]),
      ];
      for (const [change, field] of cases) {
        await expect(provider.create(spec('true', change)), field).rejects.toMatchObject({
          reason: 'refused',
          message: expect.stringContaining(field),
        });
      }
    });

    it('gets image and volumes by their names, and refuses those that it does not know', async () => {
      const unknown: Volume = { kind: 'shared-place', accessPoint: 'fsap-00000000', target: '/mnt/x', readOnly: true };
      await expect(create('true', { volumes: [unknown] })).rejects.toMatchObject({ reason: 'refused' });
      const nowhere = { ...spec('true'), image: { digest: `sha256:${'0'.repeat(64)}` } };
      await expect(provider.create(nowhere)).rejects.toMatchObject({ reason: 'refused' });
      await expect(provider.stage(nowhere.image)).rejects.toMatchObject({ reason: 'refused' });
      const path = { ...nowhere, image: { digest: `${dir}/rootfs` } };
      await expect(provider.create(path)).rejects.toMatchObject({ message: expect.stringContaining('image.digest') });
      await provider.stage(spec('true').image);
      if (!volume) return;
      const sandbox = await create('exec sleep 60', { volumes: [volume] });
      const script = `cat ${volume.target}/greeting; echo back > ${volume.target}/answer`;
      expect((await runIn(sandbox, ['/bin/sh', '-c', script])).stdout).toBe('hello\n');
      await sandbox.stop();
      const next = await create('exec sleep 60', { volumes: [volume] });
      expect((await runIn(next, ['/bin/sh', '-c', `cat ${volume.target}/answer`])).stdout).toBe('back\n');
      await next.stop();
    });

    it('tells a command that could not be run from one that failed', async () => {
      const sandbox = await create('exec sleep 60');
      const never = await runIn(sandbox, ['/no/such/program']);
      // Without a runtime between it is the shell's number for it.
      expect(never.code).toBe(provider.name === 'process' ? 127 : NEVER_RAN);
      expect(never.stdout + never.stderr).toContain('/no/such/program');
      expect((await runIn(sandbox, ['/bin/sh', '-c', 'exit 255'])).code).toBe(255);
      await sandbox.stop();
    });

    it('refuses an id that is in use', async () => {
      const first = await create('exec sleep 60');
      await expect(provider.create({ ...spec('true'), id: first.id })).rejects.toMatchObject({ reason: 'refused' });
      expect((await runIn(first, ['/bin/sh', '-c', 'echo alive'])).stdout).toBe('alive\n');
      await first.stop();
    });

    it('gives nothing and leaves nothing when the caller has gone', async () => {
      const gone = spec('exec sleep 60');
      await expect(provider.create(gone, AbortSignal.abort(new Error('gone')))).rejects.toMatchObject({
        name: 'SandboxError',
      });
      expect(await provider.sweep(new Set())).not.toContain(gone.id);
    });

    it('answers on the port that the agent listens on', async () => {
      const sandbox = await create(
        'exec /bin/busybox nc -ll -p $(echo $PORT 8080 | busybox cut -d" " -f1) -e /bin/echo pong',
      );
      await until(async () => (await ask(sandbox.address(8080))) === 'pong\n', 60_000);
      await sandbox.stop();
      expect(await ask(sandbox.address(8080))).toBeUndefined();
    });

    it('executes beside the first process: input, both outputs, status, environment, directory', async () => {
      const sandbox = await create('exec sleep 60');
      const handle = await sandbox.exec(['/bin/sh', '-c', 'cat; pwd; echo $X >&2; exit 7'], {
        env: { X: 'why' },
        cwd: '/tmp',
      });
      expect(await finish(handle, 'in\n')).toEqual({ code: 7, stdout: 'in\n/tmp\n', stderr: 'why\n' });
      await sandbox.stop();
      await expect(sandbox.exec(['/bin/true'])).rejects.toMatchObject({ reason: 'failed' });
    });

    it('executes many at once and passes a megabyte through unchanged', async () => {
      const sandbox = await create('exec sleep 60');
      const input = 'x'.repeat(MIB);
      const results = await Promise.all([1, 2, 3].map(() => runIn(sandbox, ['/bin/sh', '-c', 'exec cat'], input)));
      for (const result of results) expect(result.stdout === input && result.code === 0).toBe(true);
      await sandbox.stop();
    });

    it('kills what it executes: by signal, and when the caller aborts', async () => {
      const sandbox = await create('exec sleep 60');
      const terminated = await sandbox.exec([
        '/bin/sh',
        '-c',
        'trap "exit 9" TERM; echo ready; while :; do sleep 0.05; done',
      ]);
      terminated.stdout.once('data', () => terminated.kill('SIGTERM'));
      expect(await terminated.exited).toBe(9);
      const abort = new AbortController();
      const aborted = await sandbox.exec(['/bin/sh', '-c', 'echo ready; exec sleep 60'], { signal: abort.signal });
      aborted.stdout.once('data', () => abort.abort());
      expect(await aborted.exited).toBe(137);
      await sandbox.stop();
    });

    it('gives a terminal that knows and changes its size, and takes what is typed', async () => {
      const sandbox = await create('exec sleep 60');
      const script =
        'test -t 0 && busybox stty size; while [ "$(busybox stty size)" != "50 132" ]; do sleep 0.05; done; echo resized; read word; echo "got $word"; exit 3';
      const handle = await sandbox.exec(['/bin/sh', '-c', script], { tty: { columns: 80, rows: 24 } });
      let seen = '';
      handle.stdout.on('data', (chunk: Buffer) => {
        seen += chunk;
      });
      await until(() => seen.includes('24 80'));
      handle.resize(132, 50);
      await until(() => seen.includes('resized'));
      handle.stdin.write('hello\n');
      await until(() => seen.includes('got hello'));
      expect(await handle.exited).toBe(3);
      await sandbox.stop();
    });

    it('keeps the last output, bounded, and follows it to the end', async () => {
      const since = Math.floor(Date.now() / 1000) * 1000;
      const sandbox = await create(
        'i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); done; sleep 0.3; echo last >&2; exit 0',
      );
      const lines: string[] = [];
      const times: number[] = [];
      for await (const { line, at = 0 } of sandbox.logs({ follow: true, fromStart: true })) {
        lines.push(line);
        times.push(at);
      }
      expect(lines).toEqual([...Array.from({ length: 200 }, (_, index) => `line ${index}`), 'last']);
      expect(times).toEqual(times.toSorted((one, other) => one - other));
      expect(times[0]).toBeGreaterThanOrEqual(since);
      expect(times.at(-1)).toBeLessThanOrEqual(Date.now());
      expect(await sandbox.tail(14)).toBe('line 199\nlast\n');
      expect(await sandbox.tail(13)).toBe('last\n');
      expect(await sandbox.tail(4)).toBe('ast\n');
      expect(await sandbox.lastLines(14)).toEqual([
        { line: 'line 199', at: times.at(-2) },
        { line: 'last', at: times.at(-1) },
      ]);
      expect((await sandbox.tail(1 << 20)).startsWith('line 0\n')).toBe(true);
      await sandbox.stop();
    });

    it('never keeps more than the log bound, and keeps the newest', async () => {
      const sandbox = await create(
        'busybox yes 0123456789012345678901234567890 | busybox head -c 12000000; echo the end',
      );
      await sandbox.exited;
      const kept = await sandbox.tail(100 * MIB);
      expect(kept.length).toBeLessThan(5 * MIB);
      expect(kept.length).toBeGreaterThan(MIB);
      expect(kept.endsWith('the end\n')).toBe(true);
      await sandbox.stop();
    });

    it('stops following when the reader goes', async () => {
      const sandbox = await create('echo one; exec sleep 60');
      const lines: string[] = [];
      for await (const { line } of sandbox.logs({ follow: true, fromStart: true, signal: AbortSignal.timeout(500) }))
        lines.push(line);
      expect(lines).toEqual(['one']);
      await sandbox.stop();
    });

    it('measures processor time and memory, also after the end', async () => {
      const sandbox = await create('i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; echo done; exec sleep 60');
      await until(async () => (await sandbox.tail()) === 'done\n');
      const usage = await sandbox.usage();
      expect(usage.cpuSeconds).toBeGreaterThan(0.01);
      expect(usage.cpuSeconds).toBeLessThan(30);
      expect(usage.memoryHighWaterBytes).toBeGreaterThan(100_000);
      await sandbox.stop();
      expect((await sandbox.usage()).cpuSeconds).toBeGreaterThanOrEqual(usage.cpuSeconds);
    });

    it('lets the first process end by itself within the grace, and ends it after', async () => {
      const polite = await create('trap "echo bye; exit 5" TERM; echo ready; while :; do sleep 0.05; done');
      await until(async () => (await polite.tail()) === 'ready\n');
      await polite.stop({ graceMs: 5000 });
      expect((await polite.exited).exitCode).toBe(5);
      const deaf = await create('trap "" TERM; echo ready; while :; do sleep 0.05; done');
      await until(async () => (await deaf.tail()) === 'ready\n');
      await deaf.stop({ graceMs: 200 });
      expect((await deaf.exited).exitCode).toBe(137);
    });

    it('stops twice and at once without complaint', async () => {
      const sandbox = await create('exec sleep 60');
      await Promise.all([sandbox.stop(), sandbox.stop()]);
      await sandbox.stop();
    });

    it('is found again by the next server, with its labels, log and exit status', async () => {
      const dataDir = join(dir, 'data-reattach');
      const before = fixture.provider(dataDir);
      const labels = { session: 'abc', 'kind/of': 'ü' };
      const running = await before.create(
        smallSpec(image, 'survivor', {
          labels,
          command: [
            '/bin/sh',
            '-c',
            'echo first; while [ ! -e /tmp/end-$ID ]; do sleep 0.05; done; echo second; exit 23',
          ],
          env: { ID: `${process.pid}` },
        }),
      );
      await until(async () => (await running.tail()) === 'first\n');
      await before.close();

      const after = fixture.provider(dataDir);
      const found: Sandbox[] = [];
      for await (const sandbox of after.reattach()) found.push(sandbox);
      expect(found.map((sandbox) => [sandbox.id, sandbox.labels, sandbox.isolation])).toEqual([
        ['survivor', labels, running.isolation],
      ]);
      const [sandbox] = found;
      if (!sandbox) throw new Error('not found');
      expect(sandbox.address(8080)).toEqual(running.address(8080));
      expect((await sandbox.usage()).memoryHighWaterBytes).toBeGreaterThan(0);
      expect((await runIn(sandbox, ['/bin/sh', '-c', 'echo here'])).stdout).toBe('here\n');
      // The sandbox may end before this command tells how it did.
      await runIn(sandbox, ['/bin/sh', '-c', `touch /tmp/end-${process.pid}`]);
      expect(await sandbox.exited).toEqual({ exitCode: 23, outOfMemory: false });
      expect(await sandbox.tail()).toBe('first\nsecond\n');
      await sandbox.stop();
      expect(await after.sweep(new Set())).toEqual([]);
      await after.close();
      await rm(`/tmp/end-${process.pid}`, { force: true });
    });

    it('sweeps what nobody wants and keeps what is wanted', async () => {
      const dataDir = join(dir, 'data-sweep');
      const before = fixture.provider(dataDir);
      const kept = await before.create(smallSpec(image, 'kept', { command: ['/bin/sh', '-c', 'exec sleep 60'] }));
      await before.create(smallSpec(image, 'dropped', { command: ['/bin/sh', '-c', 'exec sleep 60'] }));
      await before.close();
      const after = fixture.provider(dataDir);
      expect(await after.sweep(new Set(['kept']))).toEqual(['dropped']);
      const found: Sandbox[] = [];
      for await (const sandbox of after.reattach()) found.push(sandbox);
      expect(found.map((sandbox) => sandbox.id)).toEqual([kept.id]);
      expect((await runIn(found[0] ?? kept, ['/bin/sh', '-c', 'echo alive'])).stdout).toBe('alive\n');
      expect(await after.sweep(new Set())).toEqual(['kept']);
      expect(await after.sweep(new Set())).toEqual([]);
      await after.close();
    });

    it('ends by itself when nobody renews the lease any more, and not as long as somebody does', async () => {
      const file = leaseFile(join(dir, 'data'));
      let beats = 0;
      const beat = (): void => writeFileSync(file, `${++beats} ${HELD_MS}`.padEnd(64));
      beat();
      const beating = setInterval(beat, HELD_MS / 10);
      try {
        const sandbox = await create('exec sleep 60');
        let ended = false;
        void sandbox.exited.then(() => {
          ended = true;
        });
        await sleep(2 * HELD_MS);
        expect(ended).toBe(false);
        clearInterval(beating);
        expect((await sandbox.exited).exitCode).toBe(137);
        await sandbox.stop();
      } finally {
        clearInterval(beating);
        await rm(file);
      }
    });

    it('limits open files', async () => {
      const sandbox = await create('ulimit -n; ulimit -Hn; exec sleep 60', {
        limits: { ...spec('').limits, openFiles: 123 },
      });
      await until(async () => (await sandbox.tail()) === '123\n123\n');
      if (!unenforced.includes('files'))
        expect((await runIn(sandbox, ['/bin/sh', '-c', 'ulimit -Hn'])).stdout).toBe('123\n');
      await sandbox.stop();
    });

    it('limits memory and says that this was why it ended', async () => {
      if (unenforced.includes('memory')) return expect(unenforced).toContain('memory');
      const sandbox = await create('exec /bin/busybox dd if=/dev/zero of=/dev/null bs=200M count=1');
      expect(await sandbox.exited).toEqual({ exitCode: 137, outOfMemory: true });
      expect((await sandbox.usage()).memoryHighWaterBytes).toBeGreaterThan(48 * MIB);
      await sandbox.stop();
    });

    it('limits processor time', async () => {
      if (unenforced.includes('cpu')) return expect(unenforced).toContain('cpu');
      const sandbox = await create('while :; do :; done', { limits: { ...spec('').limits, cpu: 0.2 } });
      const before = (await sandbox.usage()).cpuSeconds;
      const began = performance.now();
      await sleep(1000);
      const used = (await sandbox.usage()).cpuSeconds - before;
      expect(used / ((performance.now() - began) / 1000)).toBeLessThan(0.35);
      await sandbox.stop();
    });

    it('limits processes', async () => {
      if (unenforced.includes('pids')) return expect(unenforced).toContain('pids');
      const script = 'i=0; while [ $i -lt 60 ]; do sleep 60 & i=$((i+1)); done; exec sleep 60';
      const sandbox = await create(script, { limits: { ...spec('').limits, pids: 20 } });
      await until(async () => /fork|Resource/.test(await sandbox.tail()));
      await sandbox.stop();
    });

    it('limits the disk apart from the memory', async () => {
      if (unenforced.includes('disk')) return expect(unenforced).toContain('disk');
      const sandbox = await create(
        'busybox dd if=/dev/zero of=/tmp/full bs=1M count=200; busybox stat -c %s /tmp/full; exec sleep 60',
        {
          limits: { ...spec('').limits, memoryBytes: 24 * MIB, diskBytes: 80 * MIB },
        },
      );
      await until(async () => /^\d+$/m.test(await sandbox.tail()));
      const written = Number(/^(\d+)$/m.exec(await sandbox.tail())?.[1]);
      expect(await sandbox.tail()).toContain('No space left on device');
      // More than its memory, less than its disk: neither counts as the other.
      expect(written).toBeGreaterThan(60 * MIB);
      expect(written).toBeLessThan(80 * MIB);
      await sandbox.stop();
    });

    it('knows what its disk takes of the host, what was deleted inside included, also after a restart', async () => {
      if (unenforced.includes('disk')) return expect(unenforced).toContain('disk');
      const dataDir = join(dir, 'data-disk-bytes');
      const before = fixture.provider(dataDir);
      const script = 'busybox dd if=/dev/zero of=/tmp/some bs=1M count=20 2>/tmp/said; echo written; exec sleep 60';
      const made = await before.create(smallSpec(image, 'disk-bytes', { command: ['/bin/sh', '-c', script] }));
      await until(async () => (await made.tail()).endsWith('written\n'));
      // On the host, where what was written is: a kernel of its own has nothing more to write.
      expect((await runCommand(['sync'], { timeoutMs: 60_000 })).code).toBe(0);
      expect((await runIn(made, ['/bin/busybox', 'rm', '/tmp/some'])).code).toBe(0);
      expect(await made.diskBytes()).toBeGreaterThan(20 * MIB);
      expect(await made.diskBytes()).toBeLessThan(33 * MIB);
      await before.close();
      const after = fixture.provider(dataDir);
      for await (const sandbox of after.reattach()) {
        expect(await sandbox.diskBytes()).toBeGreaterThan(20 * MIB);
        await sandbox.stop();
        expect(await sandbox.diskBytes()).toBe(0);
      }
      await after.close();
    });
  });
}
