import type { Usage } from '../sandbox/index.ts';

/** What one session had used at one moment; cumulative, so that a lost sample costs nothing once a later one arrives. */
export interface UsageSample extends Usage {
  sandboxId: string;
  /** Name of the `SessionKind`. */
  kind: string;
  accountId: string;
  resourceArn: string;
  sessionId: string;
  /** Milliseconds since the epoch. */
  startedAt: number;
  at: number;
  /** The last sample of this sandbox. */
  final: boolean;
}

export type RecordUsage = (sample: UsageSample) => void;
