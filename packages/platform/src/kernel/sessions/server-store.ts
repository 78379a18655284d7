/** One server as the others know it. */
export interface ServerRecord {
  serverId: string;
  epoch: number;
  /** Grows while it lives. */
  beat: number;
  /** After how long without a beat its sessions may be given to others, ms. */
  leaseMs: number;
  address: string | undefined;
}

/** The servers that share a database. No clock is compared between them: each watches the others' beats on its own. */
export interface ServerStore {
  /** Begins a new life of this server; what an earlier one still writes is refused from then on. Resolves to its epoch. */
  claim(server: Omit<ServerRecord, 'epoch' | 'beat'>): Promise<number>;
  /** Shows that it lives; resolves to all servers, or undefined when this life was ended by another server. */
  renew(serverId: string, epoch: number): Promise<ServerRecord[] | undefined>;
  /** Ends the life of a server whose beat is still that one, and its sessions with it; how many, or undefined when it moved. */
  depose(server: ServerRecord, at: number): Promise<number | undefined>;
  /** Tells the others where this server is reached, which it may not know when it begins. */
  announce(serverId: string, epoch: number, address: string): Promise<void>;
  /** Takes leave; whatever of this life has no end yet has ended. */
  release(serverId: string, epoch: number, at: number): Promise<void>;
}
