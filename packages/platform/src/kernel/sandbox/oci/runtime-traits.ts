import type { RuntimeInfo } from './runtime-cli.ts';

/** In what a runtime differs from runc. */
export interface RuntimeTraits {
  /** Arguments of every call. */
  flags: string[];
  /** Whether it starts a sandbox in a user namespace that exists already. */
  joinsUserNamespace: boolean;
  /** Threads that it needs on the host beside those of the sandbox, which a limit of processes counts too. */
  ownThreads(pids: number): number;
  /** Memory that it needs itself; a limit of memory counts that, too. */
  ownMemoryBytes: number;
  /** Whether a command's number is the sandbox's own and signals go through the runtime. */
  signalsInside: boolean;
  /** Files that the sandbox's root must have for it. */
  files: { path: string; text: string }[];
  /** What of a specification it cannot hold a sandbox to. */
  unenforced: string[];
  /** Whether it writes a sandbox down, and others go on from that. */
  snapshots: boolean;
  /** The isolation mechanism, in plain words. */
  isolation: string;
}

const shared: RuntimeTraits = {
  flags: [],
  joinsUserNamespace: true,
  ownThreads: () => 0,
  ownMemoryBytes: 0,
  signalsInside: false,
  files: [],
  unenforced: [],
  snapshots: false,
  isolation: 'user namespace, seccomp, own network',
};

/**
 * gVisor's kernel is a process of the host, in namespaces that it makes itself, with threads of its own for each of the sandbox's.
 * Its overlay would put what a sandbox writes beside its bounded disk, so it is off.
 */
const gvisor: RuntimeTraits = {
  flags: ['--overlay2=none'],
  joinsUserNamespace: false,
  ownThreads: (pids) => pids + 256,
  ownMemoryBytes: 64 * 1024 * 1024,
  signalsInside: true,
  // An empty /tmp it would replace by memory.
  files: [{ path: '/tmp/.on-disk', text: '' }],
  unenforced: ['pids'],
  snapshots: true,
  isolation: 'kernel of its own, own network',
};

/** What is known of a runtime by the name it gives itself. */
export function runtimeTraits({ name }: Pick<RuntimeInfo, 'name'>): RuntimeTraits {
  return name.startsWith('runsc ') ? gvisor : shared;
}
