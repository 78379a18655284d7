import { readdir, readFile, readlink } from 'node:fs/promises';
import { createServer } from 'node:net';

/**
 * Who listens on a TCP port of this machine, as `node packages/platform/src/main.ts (process 4711)`; undefined when that cannot
 * be seen: other systems than Linux, or a process of another user. Reads /proc, never rejects.
 */
export async function portOwner(port: number): Promise<string | undefined> {
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFile(path, 'utf8').catch(() => '')),
  );
  const sockets = new Set(tables.flatMap((table) => listeningInodes(table, port)).map((inode) => `socket:[${inode}]`));
  if (sockets.size === 0) return undefined;
  for (const pid of await entries('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    for (const fd of await entries(`/proc/${pid}/fd`)) {
      const target = await readlink(`/proc/${pid}/fd/${fd}`).catch(() => '');
      if (sockets.has(target)) return `${await commandOf(pid)} (process ${pid})`;
    }
  }
  return undefined;
}

/** Rejects, naming who has it if that can be seen, when nobody can listen on `port` now. 0 is always free. */
export async function requireFreePort(host: string, port: number): Promise<void> {
  if (port === 0) return;
  try {
    await new Promise<void>((resolve, reject) => {
      const server = createServer();
      server.once('error', reject);
      server.listen({ host, port, exclusive: true }, () => server.close(() => resolve()));
    });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EADDRINUSE') throw new Error(await portTaken(port));
    throw new Error(`Cannot listen on ${host}:${port}: ${error instanceof Error ? error.message : error}`);
  }
}

/** The sentence for a port that somebody else listens on: who, and what to do. */
export async function portTaken(port: number): Promise<string> {
  const owner = await portOwner(port);
  const other = port < 65_535 ? port + 1 : port - 1;
  return `Port ${port} is taken${owner ? ` by ${owner}` : ''}. Stop it, or choose another port with --port ${other} (0 picks a free one).`;
}

/** Inodes of the sockets that listen (state 0A) on `port` in the text of /proc/net/tcp. */
function listeningInodes(table: string, port: number): string[] {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return table
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((columns) => columns[1]?.endsWith(local) && columns[3] === '0A')
    .flatMap((columns) => columns[9] ?? []);
}

async function commandOf(pid: string): Promise<string> {
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  // A command line can carry secrets; the program and its first argument say enough.
  return command.split('\0').slice(0, 2).join(' ').trim().slice(0, 120) || 'another program';
}

const entries = (path: string): Promise<string[]> => readdir(path).catch(() => []);
