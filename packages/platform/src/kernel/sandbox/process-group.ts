import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Usage } from './sandbox.ts';

/** USER_HZ: the kernel's ABI fixes it to 100 on every architecture that Node 24 runs on. */
const TICKS_PER_SECOND = 100;

/** Sums what the live processes of a process group have used; those that ended count through their parents once they are reaped. */
export async function groupUsage(group: number): Promise<Usage> {
  let ticks = 0;
  let memory = 0;
  for (const pid of await members(group)) {
    const [fields, status] = await Promise.all([
      statFields(pid),
      readFile(`/proc/${pid}/status`, 'utf8').catch(() => ''),
    ]);
    // utime, stime, cutime and cstime of proc_pid_stat(5), counted from the field after the command's name.
    ticks += [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields?.[index] ?? 0), 0);
    memory += Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
  }
  return { cpuSeconds: ticks / TICKS_PER_SECOND, memoryHighWaterBytes: memory };
}

/** Kills a process group and waits until it is empty. Rejects when it is not after two seconds. */
export async function endGroup(group: number): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    try {
      process.kill(-group, 'SIGKILL');
    } catch {
      return;
    }
    if ((await members(group)).length === 0) return;
    await sleep(20);
  }
  throw new Error(`the process group ${group} did not end`);
}

async function members(group: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const found: number[] = [];
  for (const pid of pids) {
    const fields = await statFields(pid);
    if (fields?.[2] === String(group) && fields[0] !== 'Z') found.push(pid);
  }
  return found;
}

/** Fields of /proc/PID/stat from the third on. */
async function statFields(pid: number): Promise<string[] | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
}
