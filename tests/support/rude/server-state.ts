import { readdir, readFile, readlink } from 'node:fs/promises';

/** What a process holds, from /proc. */
export interface ServerState {
  residentBytes: number;
  /** Without those of the embedded database, which opens its tables as it comes to need them and keeps them. */
  files: number;
  /** Connected TCP sockets; those that listen are not counted. */
  connections: number;
}

export async function stateOf(pid: number): Promise<ServerState> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const [, kib = '0'] = /^VmRSS:\s+(\d+)/m.exec(status) ?? [];
  const targets = await openFiles(pid);
  const sockets = socketsAmong(targets);
  const table = await tcpTable();
  const connections = table.filter(({ inode, listens }) => sockets.has(inode) && !listens).length;
  const files = targets.filter((target) => !DATABASE_FILE.test(target)).length;
  return { residentBytes: Number(kib) * 1024, files, connections };
}

/** How long a process has worked so far, all its threads together. */
export async function cpuSecondsOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // Behind its name, which may hold anything: the 12th and 13th are ticks of a hundredth, in its own code and in the kernel.
  const after = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(after[11]) + Number(after[12])) / 100;
}

/** Ports of TCP on which a process listens. */
export async function listeningPorts(pid: number): Promise<number[]> {
  const sockets = socketsAmong(await openFiles(pid));
  const own = (await tcpTable()).filter(({ inode, listens }) => listens && sockets.has(inode));
  return [...new Set(own.map(({ port }) => port))];
}

const DATABASE_FILE = /\/db\/(base|global|pg_\w+)\//;

/** What each descriptor of a process is: a path, or such as `socket:[inode]`. */
async function openFiles(pid: number): Promise<string[]> {
  const links = (await readdir(`/proc/${pid}/fd`)).map((fd) =>
    readlink(`/proc/${pid}/fd/${fd}`).catch(() => undefined),
  );
  return (await Promise.all(links)).filter((target) => target !== undefined);
}

function socketsAmong(targets: string[]): Set<string> {
  return new Set(targets.flatMap((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? []));
}

async function tcpTable(): Promise<{ inode: string; port: number; listens: boolean }[]> {
  const texts = await Promise.all(['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8')));
  return texts
    .flatMap((text) => text.trim().split('\n').slice(1))
    .map((line) => line.trim().split(/\s+/))
    .map((columns) => ({
      inode: columns[9] ?? '',
      port: Number.parseInt(columns[1]?.split(':').at(-1) ?? '', 16),
      listens: columns[3] === '0A',
    }));
}
