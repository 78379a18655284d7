/** Numbers of the system calls that our scripts make; every architecture that came after x86-64 shares the second row. */
export interface SyscallNumbers {
  prctl: number;
  unshare: number;
  mount: number;
  ptrace: number;
  wait4: number;
}

const later: SyscallNumbers = { prctl: 167, unshare: 97, mount: 40, ptrace: 117, wait4: 260 };

export const syscallNumbers: Partial<Record<NodeJS.Architecture, SyscallNumbers>> = {
  x64: { prctl: 157, unshare: 272, mount: 165, ptrace: 101, wait4: 61 },
  arm64: later,
  riscv64: later,
  loong64: later,
};
