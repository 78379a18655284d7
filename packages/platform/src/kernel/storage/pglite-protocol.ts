import type { RunResult } from './driver.ts';

/** What the worker is told at its start. */
export interface PgliteWorkerData {
  directory: string;
}

export type PgliteCommand =
  | { kind: 'run'; sql: string; params: unknown[] }
  | { kind: 'exec'; sql: string }
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
