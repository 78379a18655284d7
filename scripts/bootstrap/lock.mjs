import { createHash } from 'node:crypto';
import { connect, createServer } from 'node:net';

const [uvMajor = 0, uvMinor = 0] = process.versions.uv.split('.').map(Number);
/** Whether two locks of different names are two: before libuv 1.46 (Node 18) an abstract name ends before its first character. */
export const locksDiffer = process.platform !== 'linux' || uvMajor > 1 || uvMinor >= 46;

/**
 * Runs `work` while no other process holds the lock `name` of this user; `onWait` is called once when there is a wait.
 * The lock is an abstract Unix socket: the kernel lets go of it when its holder ends in whatever way, so it is never
 * stale, and who waits on it is woken instead of polling. Other systems than Linux have none; there `work` runs at once.
 */
export async function withLock(name, work, onWait) {
  if (process.platform !== 'linux') return work();
  const id = createHash('sha256').update(`${process.getuid()}:${name}`).digest('hex').slice(0, 32);
  const path = `\0agentplatform-bootstrap-${id}`;
  let waited = false;
  for (;;) {
    const server = await hold(path);
    if (server) {
      try {
        return await work();
      } finally {
        server.release();
      }
    }
    if (!waited) onWait?.();
    waited = true;
    await ended(path);
  }
}

function hold(path) {
  return new Promise((resolve, reject) => {
    const waiting = new Set();
    const server = createServer((socket) => {
      waiting.add(socket);
      socket.on('close', () => waiting.delete(socket)).on('error', () => {});
    });
    server.once('error', (error) => (error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error)));
    server.listen({ path }, () =>
      resolve({
        release() {
          server.close();
          for (const socket of waiting) socket.destroy();
        },
      }),
    );
  });
}

/** Resolves when the holder has let go, or was gone already. */
function ended(path) {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.on('error', () => {});
    socket.on('close', resolve);
  });
}
