import { readFile } from 'node:fs/promises';

/** Resident memory of a process, in bytes, and the most that it has been. */
export interface Resident {
  resident: number;
  peak: number;
  anonymous: number;
  /** Of files that are mapped, which other processes of the same program share. */
  files: number;
}

/** Reads what Linux knows of the process. Rejects when it is gone. */
export async function residentMemory(pid: number): Promise<Resident> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const of = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * 1024;
  return { resident: of('VmRSS'), peak: of('VmHWM'), anonymous: of('RssAnon'), files: of('RssFile') + of('RssShmem') };
}

/** Behind a WebAssembly memory V8 keeps so many addresses or more that nobody may use, so that it need not compare. */
const GUARD_BYTES = 2 ** 30;

/** Resident bytes of the WebAssembly memories of the process: what can be written right before a large range that nobody may use. */
export async function webAssemblyMemory(pid: number): Promise<number> {
  const maps = (await readFile(`/proc/${pid}/smaps`, 'utf8')).split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m).map((entry) => {
    const [, from = '0', to = '0', rights = ''] = /^([0-9a-f]+)-([0-9a-f]+) (\S+)/.exec(entry) ?? [];
    return {
      from: Number.parseInt(from, 16),
      to: Number.parseInt(to, 16),
      rights,
      resident: Number(/^Rss:\s+(\d+) kB$/m.exec(entry)?.[1]) * 1024,
    };
  });
  return maps.reduce((sum, { to, rights, resident }, index) => {
    const next = maps[index + 1];
    const guarded = next?.from === to && next.rights.startsWith('---') && next.to - next.from >= GUARD_BYTES;
    return rights.startsWith('rw') && guarded ? sum + resident : sum;
  }, 0);
}

/**
 * Bytes of the JavaScript heap of the main thread, asked over the inspector of a Node process, which it opens: live objects and all, or with
 * `collected` what is left once the garbage is out.
 */
export async function javaScriptHeap(url: string, collected = false): Promise<{ used: number; total: number }> {
  const socket = new WebSocket(url);
  try {
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve);
      socket.addEventListener('error', reject);
    });
    if (collected) await ask(socket, 'HeapProfiler.collectGarbage');
    const { usedSize, totalSize } = await ask(socket, 'Runtime.getHeapUsage');
    return { used: usedSize, total: totalSize };
  } finally {
    socket.close();
  }
}

async function ask(socket: WebSocket, method: string): Promise<{ usedSize: number; totalSize: number }> {
  const answer = new Promise<string>((resolve) => {
    socket.addEventListener('message', ({ data }) => resolve(String(data)), { once: true });
  });
  socket.send(JSON.stringify({ id: 1, method }));
  return JSON.parse(await answer).result;
}
