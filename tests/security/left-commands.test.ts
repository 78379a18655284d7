import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ExecHandle, ExecOptions, Sandbox } from '../../packages/platform/src/kernel/sandbox/sandbox.ts';
import { execHelpers } from '../../packages/platform/src/kernel/sandbox/testing/exec-helpers.ts';
import { until } from '../../packages/platform/src/kernel/sandbox/testing/until.ts';
import { onEachProvider, type ProviderName } from './each-provider.ts';
import { type OpenLab, type SandboxLab, shell } from './sandbox-lab.ts';

/** How a client leaves: once the command was started, once it has said something, or before any of it. */
type Moment = 'at once' | 'when it has begun' | 'in the middle';

interface RudeClient {
  /** In the shell of the sandbox; `$0` marks all that it starts. */
  script: string;
  moment: Moment;
  tty?: ExecOptions['tty'];
}

const TTY = { columns: 80, rows: 24 };
const SLEEP = 'exec sleep $0';
/** Each as often as makes 25. */
const CLIENTS: RudeClient[] = [
  ...(['at once', 'when it has begun'] as const).flatMap((moment) => [
    { script: SLEEP, moment },
    { script: SLEEP, moment },
    { script: 'yes flood', moment },
    { script: 'trap "" TERM HUP INT; sleep $0', moment },
    { script: SLEEP, moment, tty: TTY },
  ]),
  ...[
    'yes flood & yes flood >&2; sleep $0',
    'yes flood & sleep $0',
    'echo input; cat; sleep $0',
    'echo deaf; trap "" TERM HUP INT; sleep $0 & sleep $0',
    'echo children; sleep $0 & (sleep $0 &) ; sleep $0 & wait',
    'echo stopped; sleep $0 & kill -STOP $$',
    'sleep $0 & echo left',
    'sleep $0 & sleep $0 & echo left; exec yes flood',
  ].map((script) => ({ script, moment: 'in the middle' as const })),
  ...['sleep $0 & yes flood', 'echo deaf; trap "" TERM HUP INT; sleep $0', 'echo stopped; kill -STOP $$'].map(
    (script) => ({ script, moment: 'in the middle' as const, tty: TTY }),
  ),
  // A daemon, on purpose: it stays in the sandbox, and takes nothing of the host with it.
  ...[undefined, undefined, TTY, undefined].map((tty) => ({
    script: '(busybox setsid sh -c "echo daemon; exec sleep $0d" &) ; sleep $0',
    moment: 'in the middle' as const,
    ...(tty ? { tty } : {}),
  })),
];

onEachProvider((provider) => `commands whose client leaves (${provider})`, attack);

function attack(title: string, open: OpenLab, provider: ProviderName): void {
  describe(title, () => {
    let lab: SandboxLab;
    let sandbox: Sandbox;
    let serial = 0;

    beforeAll(async () => {
      lab = await open();
    });
    afterAll(() => lab.close());

    /** No other sleeps for so long. */
    const mark = (): string => `${70_000 + (process.pid % 10_000)}.${++serial}`;

    const start = async ({ script, moment, tty }: RudeClient, marker: string): Promise<ExecHandle | undefined> => {
      const leave = new AbortController();
      const command = ['/bin/sh', '-c', script, marker];
      const starting = sandbox.exec(command, { signal: leave.signal, ...(tty ? { tty } : {}) });
      if (moment === 'at once') leave.abort();
      const handle = await starting.catch(() => undefined);
      if (moment === 'when it has begun') leave.abort();
      // From here on nobody reads: what is written backs up, in the one output what is written to the other as well.
      if (moment === 'in the middle')
        for (const output of [handle?.stdout, handle?.stderr]) output?.once('readable', () => leave.abort());
      return handle;
    };

    it('the control: a command that is not left goes on, with what stands for it on the host', async () => {
      sandbox = await lab.create({ limits });
      const marker = mark();
      const handle = await sandbox.exec(['/bin/sh', '-c', 'echo begun; sleep $0', marker]);
      await new Promise((resolve) => handle.stdout.once('data', resolve));
      expect(await inside(sandbox, marker)).toBe(1);
      // The daemon of Docker has none.
      expect((await helpers(lab, sandbox)).length).toBe(provider === 'docker' ? 0 : 1);
      handle.kill();
      expect(await handle.exited).toBe(137);
      await sandbox.stop();
    });

    it('25 that leave at every moment leave nothing on the host, and of theirs nothing but daemons', async () => {
      sandbox = await lab.create({ limits });
      expect(CLIENTS.length).toBe(25);
      const marker = mark();
      const handles = await Promise.all(CLIENTS.map((client) => start(client, marker)));
      await Promise.all(handles.map((handle) => handle?.exited));
      await until(async () => (await helpers(lab, sandbox)).length === 0);
      await until(async () => (await inside(sandbox, marker)) === 0);
      expect(await inside(sandbox, `${marker}d`)).toBe(4);
      // The sandbox itself goes on as before.
      expect(await shell(sandbox, 'echo alive')).toEqual({ code: 0, out: 'alive\n' });
      await sandbox.stop();
      expect(await helpers(lab, sandbox)).toEqual([]);
    });

    it('8 whose client gives up their outputs as it leaves leave nothing either', async () => {
      sandbox = await lab.create({ limits });
      const marker = mark();
      const scripts = [
        'sleep $0 & yes flood',
        'sleep $0 & yes flood >&2',
        'sleep $0 & echo left; exec sleep $0',
        SLEEP,
      ];
      const handles = await Promise.all(
        [...scripts, ...scripts].map(async (script, at) => {
          const leave = new AbortController();
          const handle = await sandbox.exec(['/bin/sh', '-c', script, marker], { signal: leave.signal });
          // Half of them once something was said.
          if (at < scripts.length && script !== SLEEP)
            await Promise.race([handle.stdout, handle.stderr].map((output) => once(output, 'readable')));
          for (const output of [handle.stdout, handle.stderr]) output.destroy();
          leave.abort();
          return handle;
        }),
      );
      await Promise.all(handles.map(({ exited }) => exited));
      await until(async () => (await helpers(lab, sandbox)).length === 0);
      await until(async () => (await inside(sandbox, marker)) === 0);
      await sandbox.stop();
    });

    it('those that nobody has left end with their session, read or not', async () => {
      sandbox = await lab.create({ limits });
      const handles = await Promise.all(
        ['yes flood', SLEEP, 'trap "" TERM; (busybox setsid yes flood &); cat'].map((script) =>
          sandbox.exec(['/bin/sh', '-c', script, mark()]),
        ),
      );
      await sandbox.stop();
      await Promise.all(handles.map((handle) => handle.exited));
      await until(async () => (await helpers(lab, sandbox)).length === 0);
    });
  });
}

const limits = { cpu: 2, memoryBytes: 256 * 2 ** 20, pids: 400, diskBytes: 32 * 2 ** 20, openFiles: 256 };

/** How many processes of the sandbox sleep for so long; one more call of the sandbox shows them. */
async function inside(sandbox: Sandbox, marker: string): Promise<number> {
  const { out } = await shell(sandbox, `ps -o args | grep -c "^sleep ${marker}$" || :`);
  return Number(out);
}

function helpers(lab: SandboxLab, sandbox: Sandbox): Promise<string[]> {
  return execHelpers(`${lab.dir}/data/sandboxes/${sandbox.id}`);
}
