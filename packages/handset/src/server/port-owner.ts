import { readdir, readFile, readlink } from 'node:fs/promises';
import path from 'node:path';

/** Who listens on a TCP port of this machine, such as `node (process 12: node server.js)`; undefined if it cannot be told. */
export async function findPortOwner(port: number): Promise<string | undefined> {
  if (process.platform !== 'linux') return undefined;
  try {
    const inode = await listeningInode(port);
    return inode === undefined ? undefined : await ownerOf(inode);
  } catch {
    return undefined;
  }
}

async function listeningInode(port: number): Promise<string | undefined> {
  const hexPort = port.toString(16).toUpperCase().padStart(4, '0');
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    const text = await readFile(table, 'utf8').catch(() => '');
    for (const line of text.split('\n').slice(1)) {
      // sl, local address, remote address, state (0A: listening), …, inode in the tenth column
      const columns = line.trim().split(/\s+/);
      if (columns[1]?.endsWith(`:${hexPort}`) && columns[3] === '0A') return columns[9];
    }
  }
  return undefined;
}

async function ownerOf(inode: string): Promise<string | undefined> {
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const handles = await readdir(`/proc/${pid}/fd`).catch(() => []);
    for (const handle of handles) {
      const target = await readlink(`/proc/${pid}/fd/${handle}`).catch(() => '');
      if (target !== `socket:[${inode}]`) continue;
      const name = (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim();
      const command = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0').join(' ').trim();
      // Node calls its first thread `MainThread`: the program is what was started.
      const program = path.basename(command.split(' ', 1)[0] ?? '') || name;
      const shown = command.length > 60 ? `${command.slice(0, 59)}…` : command;
      return `${program || 'a program'} (process ${pid}${shown ? `: ${shown}` : ''})`;
    }
  }
  return undefined;
}
