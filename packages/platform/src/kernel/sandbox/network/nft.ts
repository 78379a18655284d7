import type { RunCommand } from '../../processes/index.ts';

interface Change {
  text: string;
  done(): void;
  failed(error: Error): void;
}

/**
 * Applies nftables transactions, one process at a time; changes that arrive meanwhile go together in the next. When a joint
 * transaction fails, each of its changes is tried alone, so that a bad one fails nobody else.
 */
export class Nft {
  #run: RunCommand;
  #command: string;
  #waiting: Change[] = [];
  #busy = false;

  constructor(run: RunCommand, command = 'nft') {
    this.#run = run;
    this.#command = command;
  }

  /** Resolves when `text` (nft syntax) is in force; rejects with what nft said, nothing of it applied. */
  apply(text: string): Promise<void> {
    if (text === '') return Promise.resolve();
    return new Promise((done, failed) => {
      this.#waiting.push({ text, done, failed });
      if (!this.#busy) void this.#drain();
    });
  }

  /** The elements of a set whose type begins with an interface name. */
  async list(table: string, set: string): Promise<{ ifname: string; element: string }[]> {
    const { code, stdout } = await this.#run([this.#command, 'list', 'set', 'inet', table, set]);
    if (code !== 0) return [];
    return [...stdout.matchAll(/"([^"]+)"(?: \. [\w./-]+)*/g)].map(([element, ifname = '']) => ({ ifname, element }));
  }

  /** All rules of the host, as nft writes them; empty when it cannot say. */
  async ruleset(): Promise<string> {
    const listed = await this.#run([this.#command, 'list', 'ruleset']).catch(() => undefined);
    return listed?.code === 0 ? listed.stdout : '';
  }

  async #drain(): Promise<void> {
    this.#busy = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      const error = await this.#transact(batch.map((change) => change.text).join(''));
      if (!error) {
        for (const change of batch) change.done();
      } else if (batch.length === 1) {
        batch[0]?.failed(error);
      } else {
        for (const change of batch) {
          const own = await this.#transact(change.text);
          if (own) change.failed(own);
          else change.done();
        }
      }
    }
    this.#busy = false;
  }

  async #transact(input: string): Promise<Error | undefined> {
    try {
      const { code, stderr } = await this.#run([this.#command, '-f', '-'], { input });
      return code === 0 ? undefined : new Error(`nft: ${stderr.trim().split('\n')[0] ?? `status ${code}`}`);
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }
}
