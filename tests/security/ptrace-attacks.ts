import { chmod, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Sandbox } from '../../packages/platform/src/kernel/sandbox/sandbox.ts';
import { traces } from '../../packages/platform/src/kernel/sandbox/testing/traces.ts';
import { until } from '../../packages/platform/src/kernel/sandbox/testing/until.ts';
import { host, type OpenLab, type SandboxLab } from './sandbox-lab.ts';

const x64 = process.arch === 'x64';
/** PTRACE_TRACEME: from here on the parent is the tracer, who alone can reap. */
const TRACEME = `print syscall(${x64 ? 101 : 117}, 0, 0, 0, 0), " traced\\n";`;
const PERL = '/usr/bin/perl';
const THREAD = '/bin/traced-thread';

const perl = (script: string): string[] => [PERL, '-e', `$| = 1; ${script}`];
/** A child of a child, traced by whoever has it once its own parent is gone. */
const orphan = (then: string): string =>
  `pipe my $r, my $w; if (!fork) { setpgrp; if (!fork) { 1 while getppid != 1; ${TRACEME} close $w; ${then} } exit } wait; close $w; <$r>; sleep 600`;

const attacks: [what: string, command: string[]][] = [
  ['that sleeps', perl(`${TRACEME} sleep 600`)],
  ['that stops', perl(`${TRACEME} kill "STOP", $$; sleep 600`)],
  ['that becomes another program', perl(`${TRACEME} exec "/bin/sleep", 600`)],
  ['whose traced orphan stops', perl(orphan('kill "STOP", $$; sleep 600'))],
  ['whose traced orphan ends', perl(orphan('exit'))],
  ...(x64
    ? ([
        ['whose traced thread sleeps', [THREAD, 'sleeps']],
        ['whose traced thread ends', [THREAD]],
      ] satisfies [string, string[]][])
    : []),
];

export interface PtraceAttackOptions {
  /** Whether the sandbox's parent lets go what stops; the shim of a container daemon takes the stop for the end, and ends it. */
  letsGo: boolean;
}

/** Attempts to have somebody on the host trace what is in a sandbox, and so to leave what nobody reaps. Every end of a session ends them. */
export function ptraceAttacks(title: string, open: OpenLab, { letsGo }: PtraceAttackOptions): void {
  describe(title, () => {
    let lab: SandboxLab;

    beforeEach(async () => {
      lab = await open({ poolSize: 0 });
      await writeFile(join(lab.image.rootfs, THREAD), TRACED_THREAD);
      await chmod(join(lab.image.rootfs, THREAD), 0o755);
    });
    afterEach(() => lab.close());

    /** Until it runs, and is traced where its program says so. */
    const begun = (sandbox: Sandbox, command: string[]): Promise<void> =>
      until(async () => command[0] === THREAD || (await sandbox.tail()).includes('0 traced'));

    const nothingLeft = async (): Promise<void> => {
      const dataDir = await realpath(join(lab.dir, 'data'));
      let left: Partial<Awaited<ReturnType<typeof traces>>> = {};
      await until(async () => {
        left = await traces(dataDir);
        // gVisor's own, for all.
        left.runtime = left.runtime?.filter((name) => name !== 'null-netns');
        return Object.values(left).flat().length === 0;
      }).catch(() => expect(left).toEqual({}));
    };

    if (x64)
      it('a parent that waits for the process alone waits for ever, where nothing defends it', async () => {
        const { out } = await host(
          PERL,
          '-e',
          `my $p = fork // die; exec "${join(lab.image.rootfs, THREAD)}" if !$p; 1 until qx(cat /proc/$p/task/*/stat) =~ /\\) Z /; kill "KILL", $p; $SIG{ALRM} = sub { print "waits"; exit }; alarm 1; waitpid $p, 0; print "reaped"`,
        );
        expect(out).toBe('waits');
      });

    it.each(attacks)('a first process %s ends with its session', async (_, command) => {
      const sandbox = await lab.create({ command });
      await begun(sandbox, command);
      await sandbox.stop();
      // An init whose child stops, which only a tracer is told of, gives up; the agent has ended itself then.
      if (letsGo) expect([1, 137]).toContain((await sandbox.exited).exitCode);
      await nothingLeft();
    });

    it.each(attacks)('a first process %s is asked to end first, and ends', async (_, command) => {
      const sandbox = await lab.create({ command });
      await begun(sandbox, command);
      await sandbox.stop({ graceMs: 300 });
      await nothingLeft();
    });

    it.each(attacks)('a command %s ends with the session', async (_, command) => {
      const sandbox = await lab.create();
      const handle = await sandbox.exec(command);
      let said = '';
      handle.stdout.on('data', (chunk) => {
        said += chunk;
      });
      handle.stderr.resume();
      await until(() => command[0] === THREAD || said.includes('0 traced'));
      await sandbox.stop();
      await handle.exited;
      await nothingLeft();
    });

    it('what each leaves is removed by the next server, which then makes others', async () => {
      const made = await Promise.all(attacks.map(([, command]) => lab.create({ command })));
      await Promise.all(made.map((sandbox, at) => begun(sandbox, attacks[at]?.[1] ?? [])));
      await lab.reopen();
      expect((await lab.provider.sweep(new Set())).sort()).toEqual(made.map(({ id }) => id).sort());
      await nothingLeft();
      const fresh = await lab.create();
      await fresh.stop();
      await nothingLeft();
    });

    it('a first process that has its parent trace it, and stops, has ended itself', async () => {
      const sandbox = await lab.create({ command: perl(`${TRACEME} kill "STOP", $$; sleep 600`) });
      expect((await sandbox.exited).exitCode).toBe(1);
      await sandbox.stop();
      await nothingLeft();
    });

    it('inside, a parent traces its child as ever', async () => {
      const stopped = 'grep -q "^State:.*t (tracing stop)"';
      const script = `my $p = fork; if (!$p) { ${TRACEME} exec "/bin/true" } 1 while system '${stopped} /proc/'.$p.'/status'; waitpid $p, 0; print syscall(${x64 ? 101 : 117}, 7, $p, 0, 0), " continued\\n"; waitpid $p, 0; print "ended $?\\n"`;
      const sandbox = await lab.create({ command: perl(`${script}; sleep 600`) });
      await until(async () => (await sandbox.tail()).includes('ended'));
      expect(await sandbox.tail()).toBe('0 traced\n0 continued\nended 0\n');
      await sandbox.stop();
    });
  });
}

/**
 * A program for x86-64, whose source is: clone(VM|FS|FILES|SIGHAND|THREAD|SYSVSEM) with a stack below its own; the thread calls
 * ptrace(PTRACE_TRACEME), and then pause() when there is an argument, or else exit(0); the first thread calls pause() for ever.
 */
const TRACED_THREAD = elf(
  '4c8b2424' + // mov r12, [rsp]: how many arguments
    'b838000000' + // mov eax, clone
    'bf000f0500' + // mov edi, flags
    '488db42400f0ffff' + // lea rsi, [rsp - 4096]
    '31d24d31d24d31c0' + // xor edx, edx; xor r10, r10; xor r8, r8
    '0f05' + // syscall
    '85c0' + // test eax, eax
    '7528' + // jnz first
    'b865000000' + // mov eax, ptrace
    '31ff31f631d24d31d2' + // PTRACE_TRACEME, 0, 0, 0
    '0f05' +
    '4983fc01' + // cmp r12, 1
    '7409' + // je end
    'b822000000' + // mov eax, pause
    '0f05' +
    'ebf7' +
    'b83c000000' + // end: mov eax, exit
    '31ff' +
    '0f05' +
    'b822000000' + // first: mov eax, pause
    '0f05' +
    'ebf7',
);

/** A file of one loaded segment with that code in it. */
function elf(code: string): Buffer {
  const text = Buffer.from(code, 'hex');
  const file = Buffer.alloc(120 + text.length);
  file.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  // Executable, x86-64, version 1.
  file.writeUInt16LE(2, 16);
  file.writeUInt16LE(62, 18);
  file.writeUInt32LE(1, 20);
  file.writeBigUInt64LE(0x400078n, 24);
  file.writeBigUInt64LE(64n, 32);
  file.writeUInt16LE(64, 52);
  file.writeUInt16LE(56, 54);
  file.writeUInt16LE(1, 56);
  // PT_LOAD, readable and executable.
  file.writeUInt32LE(1, 64);
  file.writeUInt32LE(5, 68);
  file.writeBigUInt64LE(0x400000n, 80);
  file.writeBigUInt64LE(0x400000n, 88);
  file.writeBigUInt64LE(BigInt(file.length), 96);
  file.writeBigUInt64LE(BigInt(file.length), 104);
  file.writeBigUInt64LE(4096n, 112);
  file.set(text, 120);
  return file;
}
