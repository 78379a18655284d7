import type { ServerHolder } from './session-store.ts';

/** This server's right to its sessions, as far as it knows without asking anybody. */
export interface ServerHold {
  readonly serverId: string;
  /** Counts the lives of the server; the database refuses what an earlier one writes. */
  readonly epoch: number;
  /** False once another server may have taken its sessions. */
  held(): boolean;
}

/** The session lives on another server. */
export class HeldElsewhereError extends Error {
  readonly holder: ServerHolder;

  constructor(holder: ServerHolder) {
    super(`the session is held by the server ${holder.serverId}`);
    this.name = 'HeldElsewhereError';
    this.holder = holder;
  }
}

/** The server could not tell the database in time that it lives: it has given its sessions up and takes none until it could. */
export class NotHeldError extends Error {
  constructor() {
    super('the server has lost its hold on sessions, because it did not reach the database for too long');
    this.name = 'NotHeldError';
  }
}
