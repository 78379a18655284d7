import type { RunResult } from './driver.ts';

/** What the worker is told at its start. */
export interface PgliteWorkerData {
  directory: string;
}

export type PgliteCommand =
  /** `begin`: as the first of a transaction, which it begins. */
  | { kind: 'run'; sql: string; params: unknown[]; begin?: boolean }
  | { kind: 'exec'; sql: string; begin?: boolean }
  | { kind: 'close' };

/** One command for the worker; answered in the order sent. */
export type PgliteRequest = { id: number } & PgliteCommand;

export type PgliteReply =
  | { kind: 'ready' }
  | { kind: 'result'; id: number; result: RunResult }
  | { kind: 'error'; id: number; error: PgliteFailure }
  /** The database engine itself has ended; the worker is of no more use. */
  | { kind: 'fatal'; error: PgliteFailure };

export interface PgliteFailure {
  message: string;
  code?: string;
  constraint?: string;
}
