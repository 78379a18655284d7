import { readdir, readFile, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode } from '../../system-error.ts';
import type { Usage } from '../sandbox.ts';

/**
 * Where this machine keeps its control groups. v1 has a hierarchy per controller, v2 one for all; in hybrid mode v2 is mounted
 * too, but the controllers are in v1.
 */
export interface CgroupLayout {
  version: 'v1' | 'v2' | 'hybrid';
  /** Mount points by v1 controller; empty on v2. */
  controllers: ReadonlyMap<string, string>;
  unified: string | undefined;
}

/** Reads the layout out of the text of /proc/self/mountinfo (proc(5)). */
export function parseCgroupLayout(mountinfo: string): CgroupLayout {
  const controllers = new Map<string, string>();
  let unified: string | undefined;
  for (const line of mountinfo.split('\n')) {
    const [before, after] = line.split(' - ');
    const mountPoint = before?.split(' ')[4];
    const [type, , options] = after?.split(' ') ?? [];
    if (!mountPoint) continue;
    if (type === 'cgroup2') unified ??= unescapeMount(mountPoint);
    if (type !== 'cgroup') continue;
    for (const option of options?.split(',') ?? []) {
      if (!controllers.has(option)) controllers.set(option, unescapeMount(mountPoint));
    }
  }
  const v1 = controllers.has('memory');
  return { version: v1 ? (unified ? 'hybrid' : 'v1') : 'v2', controllers: v1 ? controllers : new Map(), unified };
}

export async function readCgroupLayout(): Promise<CgroupLayout> {
  return parseCgroupLayout(await readFile('/proc/self/mountinfo', 'utf8'));
}

/** Usage of the group `path` (`/parent/id`); zeroes when it does not exist any more. */
export async function readUsage(layout: CgroupLayout, path: string): Promise<Usage> {
  if (layout.version !== 'v2') {
    const [nanoseconds, memory] = await Promise.all([
      readNumber(layout.controllers.get('cpuacct'), path, 'cpuacct.usage'),
      readNumber(layout.controllers.get('memory'), path, 'memory.max_usage_in_bytes'),
    ]);
    return { cpuSeconds: (nanoseconds ?? 0) / 1e9, memoryHighWaterBytes: memory ?? 0 };
  }
  const [cpu, peak, current] = await Promise.all([
    readText(layout.unified, path, 'cpu.stat'),
    readNumber(layout.unified, path, 'memory.peak'),
    readNumber(layout.unified, path, 'memory.current'),
  ]);
  // memory.peak came with Linux 5.19; before it, the caller's regular samples of the current use are the best there is.
  return { cpuSeconds: keyed(cpu, 'usage_usec') / 1e6, memoryHighWaterBytes: peak ?? current ?? 0 };
}

/** How many processes of the group the kernel killed for passing its memory limit. */
export async function readOomKills(layout: CgroupLayout, path: string): Promise<number> {
  return layout.version === 'v2'
    ? keyed(await readText(layout.unified, path, 'memory.events'), 'oom_kill')
    : keyed(await readText(layout.controllers.get('memory'), path, 'memory.oom_control'), 'oom_kill');
}

/** The directory whose `cgroup.procs`, with those below it, lists every process of the group `path`. */
export function groupDirectory({ version, controllers, unified }: CgroupLayout, path: string): string {
  return join((version === 'v2' ? unified : controllers.get('memory')) ?? '/sys/fs/cgroup', path);
}

/** Names of the groups directly below `parent`, over all hierarchies. */
export async function listGroups(layout: CgroupLayout, parent: string): Promise<string[]> {
  const names = new Set<string>();
  for (const root of roots(layout)) {
    const entries = await readdir(join(root, parent), { withFileTypes: true }).catch(() => []);
    for (const entry of entries) if (entry.isDirectory()) names.add(entry.name);
  }
  return [...names];
}

/** Kills what is left in the group and in those below it, and removes them from every hierarchy. Rejects when it is not gone after `attempts` tries, 20 ms apart. */
export async function removeGroup(layout: CgroupLayout, path: string, attempts = 100): Promise<void> {
  for (const root of roots(layout)) {
    const dir = join(root, path);
    for (let attempt = 1; !(await removed(dir)); attempt++) {
      if (attempt >= attempts) throw new Error(`control group ${dir} could not be removed`);
      await empty(dir);
      await sleep(20);
    }
  }
}

function roots(layout: CgroupLayout): string[] {
  const all = new Set(layout.controllers.values());
  if (layout.unified) all.add(layout.unified);
  return [...all];
}

async function removed(dir: string): Promise<boolean> {
  try {
    await rmdir(dir);
    return true;
  } catch (error) {
    return errorCode(error) === 'ENOENT';
  }
}

/** Kills its processes, and removes the groups below it, which a container daemon makes and a killed one leaves. */
async function empty(dir: string): Promise<void> {
  for (const pid of await processes(dir)) kill(pid);
  for (const entry of await readdir(dir, { withFileTypes: true }).catch(() => [])) {
    if (!entry.isDirectory()) continue;
    await empty(join(dir, entry.name));
    await removed(join(dir, entry.name));
  }
}

async function processes(dir: string): Promise<number[]> {
  const text = await readFile(join(dir, 'cgroup.procs'), 'utf8').catch(() => '');
  return text
    .split('\n')
    .map(Number)
    .filter((pid) => pid > 1);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Ended meanwhile, which is what was wanted.
  }
}

async function readText(root: string | undefined, path: string, file: string): Promise<string> {
  if (!root) return '';
  return readFile(join(root, path, file), 'utf8').catch(() => '');
}

async function readNumber(root: string | undefined, path: string, file: string): Promise<number | undefined> {
  const text = (await readText(root, path, file)).trim();
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

function keyed(text: string, key: string): number {
  return Number(new RegExp(`^${key} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
}

/** mountinfo writes space, tab, newline and backslash as \ooo. */
export function unescapeMount(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
