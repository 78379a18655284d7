import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, sleep } from '../../clock.ts';
import { type ProcessIdentity, type RunCommand, signalProcess } from '../../processes/index.ts';
import type { SandboxRecord } from '../records/sandbox-record.ts';
import { SandboxError } from '../sandbox.ts';
import type { Engine } from './oci-engine.ts';
import type { SnapshotFiles } from './snapshots.ts';

export interface SnapshotOptions {
  engine: Pick<Engine, 'instance' | 'runtime'>;
  record: Pick<SandboxRecord, 'id' | 'owner'>;
  run: RunCommand;
  clock: Clock;
  /** The sandbox's first process, as the host numbers it. */
  init: ProcessIdentity | undefined;
  /** Resolves when the sandbox's owner has ended. */
  ownerEnded: Promise<void>;
}

/** How long connections that their peers have just closed may take to end inside. */
const SETTLE_MS = 2000;
const LOOK_MS = 20;

/**
 * Writes a sandbox down as it is, into `files`, and ends it. Rejects with SandboxError `refused` when it has connections: they would be dead in
 * every copy, and what they were opened for is not known.
 */
export async function takeSnapshot(options: SnapshotOptions, files: SnapshotFiles): Promise<void> {
  const { engine, record, run, init, ownerEnded } = options;
  const { instance, runtime } = engine;
  await settled(options);
  // From here on it opens no more; what has come between is seen.
  await runtime.pause(record.id);
  refuse(await runtime.connections(record.id));
  // Both outlive the owner while they are open here: what its end writes to the disk is to be there.
  const disk = await open(join(instance.sandboxes, record.id, 'disk'));
  try {
    const mount = await open(`/proc/${record.owner.pid}/root${instance.diskMount}`);
    try {
      await runtime.checkpoint(record.id, files.state);
      // Paused it would stay.
      if (init) await signalProcess(init, 'SIGKILL');
      await ownerEnded;
      await ran(run, ['sync', '--file-system', `/proc/${process.pid}/fd/${mount.fd}`]);
    } finally {
      await mount.close();
    }
    await ran(run, ['cp', '--sparse=always', `/proc/${process.pid}/fd/${disk.fd}`, files.disk]);
  } finally {
    await disk.close();
  }
}

async function settled({ engine: { runtime }, record, clock }: SnapshotOptions): Promise<void> {
  for (const deadline = clock.monotonic() + SETTLE_MS; clock.monotonic() < deadline; await sleep(clock, LOOK_MS))
    if ((await runtime.connections(record.id)) === 0) return;
}

function refuse(connections: number): void {
  if (connections === 0) return;
  throw new SandboxError(
    'refused',
    `No snapshot is taken of a sandbox with connections; it has ${connections} ends of some.`,
  );
}

async function ran(run: RunCommand, argv: [string, ...string[]]): Promise<void> {
  const { code, stderr } = await run(argv, { timeoutMs: 120_000 });
  if (code !== 0) throw new Error(`${argv[0]}: ${stderr.trim().slice(0, 300)}`);
}
