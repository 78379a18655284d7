import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/** A process that cannot be mistaken for a later one of the same number. */
export interface ProcessIdentity {
  pid: number;
  /** Field 22 of /proc/PID/stat, clock ticks since boot, with the boot's id: unique for the life of the machine. */
  startedAt: string;
}

/** Names the live process `pid`, or undefined when it has ended (a zombie has ended). */
export async function identify(pid: number): Promise<ProcessIdentity | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  if (stat === undefined) return undefined;
  // The command's name, in parentheses, may hold anything; the numbers begin after the last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, started] = [fields[0], fields[19]];
  if (state === undefined || started === undefined || state === 'Z' || state === 'X') return undefined;
  return { pid, startedAt: `${bootId()}:${started}` };
}

export async function isAlive(process: ProcessIdentity): Promise<boolean> {
  return (await identify(process.pid))?.startedAt === process.startedAt;
}

/** Sends `signal` to exactly that process; false when it has ended already. */
export async function signalProcess(target: ProcessIdentity, signal: NodeJS.Signals): Promise<boolean> {
  if (!(await isAlive(target))) return false;
  try {
    return process.kill(target.pid, signal);
  } catch {
    return false;
  }
}

/** Kills exactly that process and waits until it has ended. Rejects when it has not after `timeoutMs`. */
export async function endProcess(target: ProcessIdentity, timeoutMs = 5000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (await signalProcess(target, 'SIGKILL')) {
    if (performance.now() > deadline) throw new Error(`process ${target.pid} did not end within ${timeoutMs} ms`);
    await sleep(5);
  }
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}
