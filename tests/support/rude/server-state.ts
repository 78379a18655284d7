import { readdir, readFile, readlink } from 'node:fs/promises';

/** What a process holds, from /proc. */
export interface ServerState {
  residentBytes: number;
  files: number;
  /** Connected TCP sockets; those that listen are not counted. */
  connections: number;
}

export async function stateOf(pid: number): Promise<ServerState> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const [, kib = '0'] = /^VmRSS:\s+(\d+)/m.exec(status) ?? [];
  const sockets = await socketsOf(pid);
  const table = await tcpTable();
  const connections = table.filter(({ inode, listens }) => sockets.has(inode) && !listens).length;
  return { residentBytes: Number(kib) * 1024, files: (await readdir(`/proc/${pid}/fd`)).length, connections };
}

/** Ports of TCP on which a process listens. */
export async function listeningPorts(pid: number): Promise<number[]> {
  const sockets = await socketsOf(pid);
  const own = (await tcpTable()).filter(({ inode, listens }) => listens && sockets.has(inode));
  return [...new Set(own.map(({ port }) => port))];
}

async function socketsOf(pid: number): Promise<Set<string>> {
  const inodes = new Set<string>();
  for (const fd of await readdir(`/proc/${pid}/fd`)) {
    const target = await readlink(`/proc/${pid}/fd/${fd}`).catch(() => '');
    const [, inode] = /^socket:\[(\d+)\]$/.exec(target) ?? [];
    if (inode !== undefined) inodes.add(inode);
  }
  return inodes;
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
