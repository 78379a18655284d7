import { readFile } from 'node:fs/promises';
import type { Browser } from 'playwright-core';

/** What one page may hold: its scripts' heap is bounded by Chromium, and all of it (images, canvases, buffers) by the watch below. */
export const PAGE_MEMORY_MB = 512;
export const HEAP_ARGS: readonly string[] = ['--js-flags=--max-old-space-size=256'];
const LOOK_MS = 1_000;

export interface PageMemory {
  close(): Promise<void>;
}

/**
 * End each renderer of `browser` that has grown past the limit; its page is then told as crashed. `onEnded` is told how much
 * it held. Linux only: elsewhere the bound of the heap stands alone.
 */
export async function watchPageMemory(browser: Browser, onEnded: (megabytes: number) => void): Promise<PageMemory> {
  if (process.platform !== 'linux') return { close: async () => undefined };
  const session = await browser.newBrowserCDPSession();
  let looking: Promise<void> | undefined;
  const look = async (): Promise<void> => {
    const { processInfo } = await session.send('SystemInfo.getProcessInfo');
    for (const { type, id } of processInfo) {
      if (type !== 'renderer') continue;
      const megabytes = await residentMegabytes(id);
      if (megabytes <= PAGE_MEMORY_MB) continue;
      process.kill(id, 'SIGKILL');
      onEnded(megabytes);
    }
  };
  const timer = setInterval(() => {
    // One look at a time; a browser that has ended is told by others.
    looking ??= look()
      .catch(() => undefined)
      .finally(() => {
        looking = undefined;
      });
  }, LOOK_MS);
  timer.unref();
  return {
    async close() {
      clearInterval(timer);
      await looking;
      await session.detach().catch(() => undefined);
    },
  };
}

/** What a process holds of the machine's memory; 0 if it is gone. */
async function residentMegabytes(id: number): Promise<number> {
  const status = await readFile(`/proc/${id}/status`, 'utf8').catch(() => '');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024;
}
