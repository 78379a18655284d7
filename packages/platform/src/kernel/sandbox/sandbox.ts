import type { Readable, Writable } from 'node:stream';

/** What a provider says of itself on this machine; shown by `agentcore doctor`. */
export interface ProbeReport {
  provider: string;
  usable: boolean;
  /** Plain words: `container (runc 1.1.5, seccomp, own network)`, `none`. */
  isolation: string;
  missing: { what: string; remedy: string }[];
  /** What of a specification the provider cannot hold a sandbox to; absent when it holds it to all. */
  unenforced?: string[];
  /** What its sandboxes use up for each other; absent when that is nothing known. */
  shared?: string[];
  /** Where on this host it keeps what is not below the data directory; absent when that is nowhere. */
  keepsAt?: string;
}

/** An image by its name, which is the same wherever it is. */
export interface SandboxImage {
  /** sha256:… of the manifest. */
  digest: string;
  /** Every platform has this image: where they share a cache it is unpacked once for all of them. */
  common?: true;
  /** The account that asks for it now, to whose quota what is unpacked of it counts; absent for an image that was accepted before. */
  askedBy?: string;
}

/** A file system beside the sandbox's own, by what it is; the provider knows where that is, and mounts it at `target`, an absolute path inside. */
export type Volume =
  /** The storage of whichever session has the sandbox; it may be attached (`SessionVolumes`) only when the sandbox runs already. */
  | { kind: 'session-storage'; target: string }
  /** A place that the operator shares, by the id of its access point. */
  | { kind: 'shared-place'; accessPoint: string; target: string; readOnly: boolean };

/**
 * Where a sandbox finds the platform itself, on port 80: an address that AWS SDKs take credentials of a container from. It leads
 * to the port that the provider was opened with, and only for a sandbox whose policy says so.
 */
export const SANDBOX_ENDPOINT_ADDRESS = '169.254.170.2';

/** One service that a sandbox may reach over TCP, wherever it is. */
export interface NetworkEndpoint {
  /** The name that is known inside for the addresses; an address stands for itself. */
  host: string;
  /** IPv4, as the name was resolved when the sandbox was asked for. */
  addresses: string[];
  port: number;
}

export interface NetworkPolicy {
  /** none: loopback only · restricted: the internet without private ranges. */
  egress: 'none' | 'restricted';
  /** Private or loopback ranges opened on purpose (CIDR). */
  allowCidrs: string[];
  /** Listeners on the host's loopback interface that a sandbox may reach: `http://host.docker.internal:<port>`, or `platform.internal`. */
  hostPorts: number[];
  /** Single services that are open besides, on private addresses, too; absent for none. */
  endpoints?: NetworkEndpoint[];
  /** Opens `SANDBOX_ENDPOINT_ADDRESS`. */
  sandboxEndpoint?: boolean;
}

/** What a sandbox is to be, in words that mean the same on every machine: plain data, with no path of the platform's own machine in it. */
export interface SandboxSpec {
  /** Unique, `[a-z0-9-]{1,63}`; names the cgroup, the network namespace and the directory. */
  id: string;
  image: SandboxImage;
  /** Replaces entrypoint and cmd of the image when given. */
  command?: string[];
  /** The command is the first process itself, which nothing inside can end; nobody reaps the orphans of others then. Else it is an init's child. */
  ownInit?: true;
  /**
   * What runs in it may confine processes of its own in namespaces of users, processes and networks, as Chromium's sandbox does. Whether it can is for
   * the kernel to say; absent: the system-call filter says no.
   */
  namespaces?: true;
  env: Record<string, string>;
  /** More of it, for the first process alone: it is in no record of the sandbox, and commands that are run beside that process do not have it. */
  secretEnv?: Record<string, string>;
  volumes: Volume[];
  network: NetworkPolicy;
  limits: SandboxLimits;
  /**
   * It may begin as the copy of an earlier one of the same specification that `Sandbox.snapshot` has kept: whatever is its own (keys, storage) is
   * neither in its environment nor mounted. Where it cannot, it begins anew.
   */
  snapshot?: true;
  /** Files that it has inside, in place of what the image has there: root's, and everybody reads them. A copy has its own. Only where `keepsSnapshots`. */
  files?: { path: string; text: string }[];
  /** Kept with the sandbox and given back by `reattach`. */
  labels: Record<string, string>;
}

export interface SandboxLimits {
  /** Virtual CPUs, fractions allowed. */
  cpu: number;
  memoryBytes: number;
  /** Memory that is promised to it: it is not made where that cannot be kept, and the kernel takes it last. Absent: none. */
  reservedMemoryBytes?: number;
  pids: number;
  /** Bytes that the sandbox may write to its root file system and /tmp together. */
  diskBytes: number;
  openFiles: number;
}

export interface Usage {
  /** CPU seconds used since the sandbox began, user and system. */
  cpuSeconds: number;
  /** Highest memory use so far, in bytes, with the sandbox's own overhead. */
  memoryHighWaterBytes: number;
}

/** How a sandbox ended by itself. */
export interface SandboxExit {
  /** Exit status of its first process, 128 + signal when a signal ended it, undefined when unknown (after a restart of the server). */
  exitCode: number | undefined;
  /** Ended by the kernel for passing its memory limit. */
  outOfMemory: boolean;
}

export interface ExecOptions {
  env?: Record<string, string>;
  cwd?: string;
  /** A pseudo-terminal of this size; stdout carries both streams then. */
  tty?: { columns: number; rows: number };
  signal?: AbortSignal;
}

export interface ExecHandle {
  stdin: Writable;
  /** Both outputs are to be read or destroyed: with some providers one that nobody reads holds up the other. */
  stdout: Readable;
  stderr: Readable;
  /** Only with a tty. */
  resize(columns: number, rows: number): void;
  /** Signals the command and its process group. After SIGKILL, the default, no process of it stays on the host, and its output ends even if another process holds it open. */
  kill(signal?: NodeJS.Signals): void;
  /** Exit status as a shell would say it, `NEVER_RAN` when the command did not get so far. Never rejects. */
  exited: Promise<number>;
}

/** A line of what a sandbox's first process wrote. */
export interface LogLine {
  line: string;
  /** When its beginning was written, to the second, in milliseconds since the epoch; absent where nobody noted it. */
  at?: number;
}

/** Exit status of a command that could not be run, as when its sandbox is ending (wire: exit code of a platform error). */
export const NEVER_RAN = -1;

export interface Sandbox {
  readonly id: string;
  readonly labels: Record<string, string>;
  readonly isolation: string;
  /** Whether it began as the copy of another one, of which `forget` removes what was kept; absent when it began anew. */
  readonly copied?: { forget(): Promise<void> };
  /**
   * Keeps what runs in it, its memory and its disk for those that are made of the same specification, and ends it. Absent where that is not possible.
   * Rejects when it has connections, and when it cannot be kept; it may have ended then.
   */
  readonly snapshot?: () => Promise<void>;
  /** Where a TCP connection to that port inside the sandbox goes, as seen by the server. */
  address(port: number): { host: string; port: number };
  exec(command: string[], options?: ExecOptions): Promise<ExecHandle>;
  usage(): Promise<Usage>;
  /** Bytes of the host's disk that its own disk takes, what was deleted inside included; 0 where it has none of its own. Never rejects. */
  diskBytes(): Promise<number>;
  /** The last lines that its first process wrote, stdout and stderr together, at most `maxBytes` (default 4096). */
  tail(maxBytes?: number): Promise<string>;
  /** The same lines, each with its time. */
  lastLines(maxBytes: number): Promise<LogLine[]>;
  /** Lines as they come, from the beginning of what is kept when `fromStart`; ends with the sandbox. */
  logs(options: { follow: boolean; fromStart: boolean; signal?: AbortSignal }): AsyncIterable<LogLine>;
  /** Resolves when its first process has ended, by itself or by `stop`. Never rejects. */
  readonly exited: Promise<SandboxExit>;
  /** Ends every process, then removes cgroup, network, mounts and files. Idempotent; rejects only if something could not be removed. */
  stop(options?: { graceMs?: number }): Promise<void>;
}

/** Its sandboxes end by themselves when their server's lease lapses (`lease-file.ts`), whether or not the server still runs. */
export interface SandboxProvider {
  readonly name: 'oci' | 'process' | 'docker' | 'kubernetes';
  probe(): Promise<ProbeReport>;
  /** Gets the image ready, so that no sandbox has to wait for it. Rejects when it is not in the platform's store, or cannot be got ready. */
  stage(image: SandboxImage, signal?: AbortSignal): Promise<void>;
  /** Rejects with a `SandboxError`, or as `stage` does, and leaves nothing behind. */
  create(spec: SandboxSpec, signal?: AbortSignal): Promise<Sandbox>;
  /** Whether `SandboxSpec.snapshot` can have an effect and `SandboxSpec.files` are made; absent when not. */
  keepsSnapshots?(): Promise<boolean>;
  /** The sandboxes that survived a restart of the server. */
  reattach(): AsyncIterable<Sandbox>;
  /**
   * Removes every cgroup, namespace, mount and file of a sandbox of this data directory whose id is not in `keep`, or, without that, of those
   * that an earlier attempt could not remove; returns the ids removed. Tries all, and rejects then with what could not be removed.
   */
  sweep(keep?: ReadonlySet<string>): Promise<string[]>;
  close(): Promise<void>;
}

/** A sandbox could not be made or used. `reason` is machine-readable; the message names cause and remedy. */
export class SandboxError extends Error {
  /** `command`: what the image or its owner wants to run cannot be run. */
  readonly reason: 'unavailable' | 'refused' | 'capacity' | 'command' | 'failed';
  constructor(reason: SandboxError['reason'], message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'SandboxError';
    this.reason = reason;
  }
}
