import type { ServerRecord, ServerStore } from '../server-store.ts';

/** The servers without a database; held to the same contract suite. `onDeposed` ends the sessions of one. */
export class MemoryServerStore implements ServerStore {
  readonly servers = new Map<string, ServerRecord>();
  onDeposed: (serverId: string) => number = () => 0;
  #epochs = 0;

  async claim(server: Omit<ServerRecord, 'epoch' | 'beat'>): Promise<number> {
    this.#epochs += 1;
    this.servers.set(server.serverId, { ...server, epoch: this.#epochs, beat: 0 });
    return this.#epochs;
  }

  async renew(serverId: string, epoch: number): Promise<ServerRecord[] | undefined> {
    const server = this.servers.get(serverId);
    if (server?.epoch !== epoch) return undefined;
    server.beat += 1;
    return [...this.servers.values()].map((one) => ({ ...one }));
  }

  async depose(server: ServerRecord): Promise<number | undefined> {
    const known = this.servers.get(server.serverId);
    if (known?.epoch !== server.epoch || known.beat !== server.beat) return undefined;
    this.servers.delete(server.serverId);
    return this.onDeposed(server.serverId);
  }

  async announce(serverId: string, epoch: number, address: string): Promise<void> {
    const server = this.servers.get(serverId);
    if (server?.epoch === epoch) server.address = address;
  }

  async release(serverId: string, epoch: number): Promise<void> {
    if (this.servers.get(serverId)?.epoch === epoch) this.servers.delete(serverId);
  }
}
