import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../clock.ts';
import { type ProcessIdentity, signalProcess } from '../../processes/index.ts';
import { endOfLog, followLog, logFiles } from '../exec/log-file.ts';
import { ProvidedSandbox, type SandboxIdentity, type SandboxParts } from '../provided-sandbox.ts';
import type { SandboxExit } from '../sandbox.ts';

/** What differs between providers whose sandboxes have an owner process. */
export interface OwnedParts
  extends Pick<
    SandboxParts,
    'address' | 'exec' | 'readUsage' | 'diskBytes' | 'kill' | 'remove' | 'copied' | 'snapshot'
  > {
  /** Whether the kernel killed any of its processes for their use of memory. */
  ranOutOfMemory(): Promise<boolean>;
}

export interface OwnedSandboxOptions extends SandboxIdentity {
  dir: string;
  clock: Clock;
  /** The sandbox's first process, as the host numbers it. */
  init: ProcessIdentity | undefined;
  /** Resolves when the owner has ended; the sandbox has then, too. */
  ownerEnded: Promise<void>;
  parts: OwnedParts;
}

const SIGKILL_STATUS = 137;

/** A sandbox whose owner process keeps the log and writes down the exit status in `dir`. */
export function ownedSandbox({
  dir,
  clock,
  init,
  ownerEnded,
  parts,
  ...identity
}: OwnedSandboxOptions): ProvidedSandbox {
  return new ProvidedSandbox(identity, {
    ...parts,
    ended: ownerEnded.then(() => readExit(dir, parts)),
    endOfLog: (maxBytes) => endOfLog(logFiles(dir), maxBytes),
    logs: (options, ended) => followLog(logFiles(dir), { ...options, clock, ended }),
    terminate: async () => init !== undefined && (await signalProcess(init, 'SIGTERM')),
  });
}

async function readExit(dir: string, parts: OwnedParts): Promise<SandboxExit> {
  const text = await readFile(join(dir, 'exit'), 'utf8').catch(() => '');
  const exitCode = /^\d+\n$/.test(text) ? Number(text) : undefined;
  // An owner that was killed leaves the sandbox without anyone to read its output: it ends with it.
  if (exitCode === undefined) await parts.kill().catch(() => undefined);
  const killed = exitCode === SIGKILL_STATUS || exitCode === undefined;
  return { exitCode, outOfMemory: killed && (await parts.ranOutOfMemory().catch(() => false)) };
}
