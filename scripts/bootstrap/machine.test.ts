import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { installParts, missingParts } from './machine.mjs';
import { CommandFailed } from './run.mjs';
import { Stop } from './stop.mjs';

const root = mkdtempSync(join(tmpdir(), 'agentplatform-machine-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A Debian machine without anything; `apt-get install` brings what it names. */
function machine(over: Record<string, unknown> = {}) {
  const present = new Set(['apt-get']);
  const files: Record<string, string> = {
    nftables: 'nft',
    e2fsprogs: 'mkfs.ext4',
    iproute2: 'ip',
    'containernetworking-plugins': '/usr/lib/cni/host-local',
    tini: '/usr/bin/tini-static',
    'python3-pip': 'pip3',
    'docker.io': 'dockerd',
    'golang-go': 'go',
    'busybox-static': '/bin/busybox',
    'libc6-dev': '/usr/include/stdio.h',
    xvfb: 'Xvfb',
  };
  const told: string[] = [];
  const calls: string[][] = [];
  return {
    told,
    calls,
    platform: 'linux',
    env: {},
    isRoot: true,
    has: (file: string) => present.has(file),
    say: (text: string) => told.push(text),
    aptGet: async (args: string[]) => {
      calls.push(args);
      for (const name of args) present.add(files[name] ?? name);
      return '';
    },
    ...over,
  };
}

/** As `npm start` and the others do. */
async function ensureMachine(
  at: string,
  task: string,
  args: string[],
  here: ReturnType<typeof machine>,
): Promise<void> {
  await installParts(missingParts(at, task, args, here), here);
}

const stopOf = async (work: Promise<void>): Promise<Stop> => {
  try {
    await work;
  } catch (error) {
    if (error instanceof Stop) return error;
    throw error;
  }
  throw new Error('nothing was stopped');
};

describe('what the machine must have', () => {
  it('as root on Debian says what it installs and why, installs it, and is quiet the next time', async () => {
    const here = machine();
    await ensureMachine(root, 'start', [], here);
    expect(here.told.join('')).toMatch(/runc +runs each session in a container of its own/);
    expect(here.calls).toEqual([
      ['update'],
      [
        'install',
        '-y',
        '--no-install-recommends',
        'runc',
        'containernetworking-plugins',
        'tini',
        'nftables',
        'e2fsprogs',
      ],
    ]);
    const said = here.told.length;
    await ensureMachine(root, 'start', [], here);
    expect([here.told.length, here.calls.length]).toEqual([said, 2]);
  });

  it('brings Python for the tests only', async () => {
    const here = machine();
    await ensureMachine(root, 'test', [], here);
    expect(here.calls[1]).toContain('python3-pip');
  });

  it.each(['check', 'docs-update', 'contract-update'])('needs nothing for %s', async (task) => {
    const here = machine({ isRoot: false });
    await ensureMachine(root, task, [], here);
    expect(here.told).toEqual([]);
  });

  it.each([
    ['start', 'npm start'],
    ['platform', 'npm run platform'],
  ])('stops %s of a user who is not root with the choices, and installs nothing', async (task, command) => {
    const here = machine({ isRoot: false });
    const { message, exitCode } = await stopOf(ensureMachine(root, task, ['--port', '1'], here));
    expect(exitCode).toBe(3);
    expect(message).toContain(`"sudo ${command}"`);
    expect(message).toContain('--sandbox process');
    expect(message).toContain('NO isolation');
    // Why, and a line for each choice.
    expect(message.split('\n')).toHaveLength(3);
    expect(here.calls).toEqual([]);
  });

  it('goes on with the tests of a user who is not root, and says what that means', async () => {
    const here = machine({ isRoot: false });
    await ensureMachine(root, 'test', [], here);
    expect(here.told.join()).toContain('tests that need real sandboxes are skipped');
  });

  it.each([
    [['--sandbox', 'process'], {}],
    [['--sandbox=process'], {}],
    [[], { AGENTPLATFORM_SANDBOX_PROVIDER: 'process' }],
  ])('leaves a provider that was chosen by name to the platform: %j %j', async (args, env) => {
    const here = machine({ isRoot: false, env });
    await ensureMachine(root, 'start', args, here);
    expect(here.calls).toEqual([]);
  });

  it('sees a provider that config.json names', async () => {
    writeFileSync(join(root, 'config.json'), '{"sandbox":{"provider":"process"}}');
    await ensureMachine(root, 'start', ['--data', root], machine({ isRoot: false }));
    writeFileSync(join(root, 'config.json'), '{"sandbox":{"provider":"auto"}}');
    await stopOf(ensureMachine(root, 'start', ['--data', root], machine({ isRoot: false })));
    writeFileSync(join(root, 'config.json'), '{ no JSON');
    await stopOf(ensureMachine(root, 'start', ['--data', root], machine({ isRoot: false })));
  });

  it.each([[['--sandbox', 'auto']], [['--sandbox']]])('does not take %j for a choice', async (args) => {
    await stopOf(ensureMachine(root, 'start', args, machine({ isRoot: false })));
  });

  it('names what is missing where there is no apt-get', async () => {
    const { message } = await stopOf(ensureMachine(root, 'start', [], machine({ has: () => false })));
    expect(message).toMatch(/runc – .*\n.*containernetworking-plugins/);
    expect(message).toContain('dnf install');
  });

  it.each([
    ["E: Failed to fetch http://d/runc.deb  Temporary failure resolving 'd'", 'Check the internet connection'],
    ['E: Unable to locate package runc', 'add-apt-repository universe'],
    [
      "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem.",
      'run dpkg --configure -a',
    ],
    ['E: Write error - write (28: No space left on device)', 'The disk is full'],
    ['E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1', 'Another program installs packages'],
    ['E: something else', 'Then run the same command again'],
  ])('explains %j', async (output, remedy) => {
    const failing = machine({ aptGet: async () => Promise.reject(new CommandFailed('apt-get', 100, output)) });
    const { message } = await stopOf(ensureMachine(root, 'start', [], failing));
    expect(message).toContain(output);
    expect(message).toContain(remedy);
    expect(message).toContain('apt-get install runc containernetworking-plugins tini nftables e2fsprogs');
  });

  it('does not trust an installation that left something out', async () => {
    const { message } = await stopOf(ensureMachine(root, 'start', [], machine({ aptGet: async () => '' })));
    expect(message).toContain('runc (looked for runc)');
  });
});
