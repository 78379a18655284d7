import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Usage } from '../sandbox.ts';

/** USER_HZ: the kernel's ABI fixes it to 100 on every architecture that Node 24 runs on. */
const TICKS_PER_SECOND = 100;

/** Sums what the live processes of a process group have used; those that ended count through their parents once they are reaped. */
export async function groupUsage(group: number): Promise<Usage> {
  let ticks = 0;
  let memory = 0;
  for (const { pid, fields } of await members(group)) {
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    // utime, stime, cutime and cstime of proc_pid_stat(5), counted from the field after the command's name.
    ticks += [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index] ?? 0), 0);
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

/**
 * Signals the process group that a command of a sandbox leads or led, with what is left of it. Its number may be another's by now: only
 * a group with a member in a control group whose path holds `owner` is signalled. One that has ended is no error.
 */
export async function signalGroupOf(owner: string, group: number, signal: NodeJS.Signals): Promise<void> {
  for (const { pid } of await members(group)) {
    if (!(await inControlGroup(pid, owner))) continue;
    return signalEach([-group], signal);
  }
}

/** Whether a process of the host is in a control group whose path holds `owner`. */
export async function inControlGroup(pid: number, owner: string): Promise<boolean> {
  return (await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '')).includes(owner);
}

/** Kills a process of the host with all that it has started and that has not been left by its parent, until none is there. Rejects when they are not gone after two seconds. */
export async function endTree(root: number): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const tree = treeOf(root, await processes());
    if (tree.length === 0) return;
    signalEach(tree, 'SIGKILL');
    await sleep(20);
  }
  throw new Error(`the process ${root} and its children did not end`);
}

/** The host's other processes that have the parent of this one. */
export async function siblingsOf(pid: number): Promise<number[]> {
  const all = await processes();
  const parent = all.find((one) => one.pid === pid)?.fields[1];
  return all.flatMap((one) => (one.fields[1] === parent && one.pid !== pid ? [one.pid] : []));
}

/** The host's processes whose command line `matches`. */
export async function processesWith(matches: (args: string[]) => boolean): Promise<number[]> {
  return filterPids(await pids(), async (pid) =>
    matches((await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')),
  );
}

/** The host's processes that were started with `entry`, `NAME=value`, in their environment. */
export async function processesInEnvironment(entry: string): Promise<number[]> {
  return filterPids(await pids(), async (pid) =>
    (await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')).split('\0').includes(entry),
  );
}

interface Seen {
  pid: number;
  /** The fields of /proc/PID/stat, from the third on. */
  fields: string[];
}

/** A process of that number, and all below it. */
function treeOf(root: number, all: readonly Seen[]): number[] {
  const tree = new Set(all.filter(({ pid }) => pid === root).map(({ pid }) => pid));
  for (let size = -1; size !== tree.size; ) {
    size = tree.size;
    for (const { pid, fields } of all) if (tree.has(Number(fields[1]))) tree.add(pid);
  }
  return [...tree];
}

async function members(group: number): Promise<Seen[]> {
  return (await processes()).filter(({ fields }) => fields[2] === String(group));
}

/** All of the host but those that only wait to be reaped. */
async function processes(): Promise<Seen[]> {
  const seen = await Promise.all(
    (await pids()).map(async (pid) => {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
      return { pid, fields: stat.slice(stat.lastIndexOf(')') + 2).split(' ') };
    }),
  );
  return seen.filter(({ fields }) => fields.length > 1 && fields[0] !== 'Z');
}

async function pids(): Promise<number[]> {
  return (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
}

async function filterPids(among: number[], holds: (pid: number) => Promise<boolean>): Promise<number[]> {
  const held = await Promise.all(among.map(holds));
  return among.filter((_, index) => held[index]);
}

function signalEach(targets: readonly number[], signal: NodeJS.Signals): void {
  for (const target of targets) {
    try {
      process.kill(target, signal);
    } catch {
      // It has ended meanwhile.
    }
  }
}
