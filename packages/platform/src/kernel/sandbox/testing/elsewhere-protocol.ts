import type { HostMount, PreparedImage } from '../host-stage.ts';
import type { ExecOptions, LogLine, SandboxError, SandboxImage, SandboxSpec } from '../sandbox.ts';

/** What a provider elsewhere is told when it is made: its own directory, and where it has what specifications name. */
export interface ElsewhereSetting {
  dataDir: string;
  images: [string, PreparedImage][];
  mounts: [string, HostMount][];
}

export type Ask =
  | { method: 'probe' | 'reattach' | 'close' }
  | { method: 'stage'; image: SandboxImage }
  | { method: 'create'; spec: SandboxSpec }
  | { method: 'sweep'; keep: string[] | undefined }
  | { method: 'usage' | 'diskBytes' | 'exited'; sandbox: string }
  | { method: 'tail'; sandbox: string; maxBytes: number | undefined }
  | { method: 'lastLines'; sandbox: string; maxBytes: number }
  | { method: 'stop'; sandbox: string; graceMs: number | undefined }
  | { method: 'logs'; sandbox: string; follow: boolean; fromStart: boolean }
  | { method: 'exec'; sandbox: string; command: string[]; options: Omit<ExecOptions, 'signal'> };

/** Said of an ask that is under way. */
export type Aside =
  | { aside: 'abort' }
  /** Undefined: there is no more. */
  | { aside: 'stdin'; chunk: Uint8Array | undefined }
  | { aside: 'resize'; columns: number; rows: number }
  | { aside: 'kill'; signal: NodeJS.Signals | undefined };

export type ToProvider = (Ask | Aside) & { id: number };

export type FromProvider = { id: number } & (
  | { value: unknown }
  | { failure: { message: string; reason: SandboxError['reason'] | undefined } }
  | { event: 'line'; line: LogLine | undefined }
  | { event: 'stdout' | 'stderr'; chunk: Uint8Array | undefined }
  | { event: 'exited'; code: number }
);

/** What is known of a sandbox without asking. */
export interface Described {
  id: string;
  labels: Record<string, string>;
  isolation: string;
  host: string;
}
