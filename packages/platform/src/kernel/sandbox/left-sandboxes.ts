import type { Logger } from 'pino';
import { LEAST_DISK_BYTES } from './host/disk-bytes.ts';
import type { Sandbox, SandboxProvider } from './sandbox.ts';

/** The sandboxes that an earlier server left running, before this one takes them up: one of them may have filled the disk meanwhile. */
export class LeftSandboxes {
  readonly #open: () => Promise<SandboxProvider>;
  readonly #log: Logger;
  #taken: Promise<{ provider: SandboxProvider; left: Sandbox[] }> | undefined;

  /** `open` makes a provider for this alone; what it takes up is the next one's again once it is closed. */
  constructor(open: () => Promise<SandboxProvider>, log: Logger) {
    this.#open = open;
    this.#log = log;
  }

  /** Ends the one whose disk takes most. Resolves once it is gone; with false when none is left that takes much. */
  readonly endLargest = async (): Promise<boolean> => {
    this.#taken ??= this.#take();
    const { left } = await this.#taken;
    const sizes = await Promise.all(left.map(async (sandbox) => ({ sandbox, bytes: await sandbox.diskBytes() })));
    const largest = sizes.toSorted((a, b) => b.bytes - a.bytes).at(0);
    if (!largest || largest.bytes < LEAST_DISK_BYTES) return false;
    const { sandbox, bytes } = largest;
    this.#log.warn(
      { bytes, sandboxId: sandbox.id },
      'the disk was filled while the server was away: the sandbox whose disk takes most of it is ended',
    );
    left.splice(left.indexOf(sandbox), 1);
    await sandbox.stop({ graceMs: 0 });
    return true;
  };

  /** Leaves the others to the provider that comes. */
  async close(): Promise<void> {
    const taken = await this.#taken?.catch(() => undefined);
    await taken?.provider.close();
  }

  async #take(): Promise<{ provider: SandboxProvider; left: Sandbox[] }> {
    const provider = await this.#open();
    try {
      const left: Sandbox[] = [];
      for await (const sandbox of provider.reattach()) left.push(sandbox);
      return { provider, left };
    } catch (error) {
      await provider.close();
      throw error;
    }
  }
}
