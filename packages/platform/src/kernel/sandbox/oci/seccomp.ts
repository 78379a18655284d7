import profile from './seccomp-default.json' with { type: 'json' };

/** `linux.seccomp` of the OCI runtime specification, as far as we use it. */
export interface SeccompProfile {
  defaultAction: string;
  defaultErrnoRet: number;
  architectures: string[];
  syscalls: SeccompRule[];
}

interface SeccompRule {
  names: string[];
  action: string;
  errnoRet?: number;
  args?: { index: number; value: number; valueTwo?: number; op: string }[];
}

const EPERM = 1;
const ENOSYS = 38;
const ALLOW = 'SCMP_ACT_ALLOW';
const REFUSE = 'SCMP_ACT_ERRNO';

/** Every CLONE_NEW* flag: a sandbox makes threads and processes, never namespaces. */
const NAMESPACE_FLAGS = 0x7e020000;
/** Those of them that a program may use where it confines its own processes: users (0x10000000), processes and networks stay open. */
const OTHER_NAMESPACE_FLAGS = 0x0e020000;
/** What such a program calls besides; each needs a capability, which it has in namespaces of its own alone. */
const CONFINING = ['unshare', 'chroot'];
/** AF_UNIX, AF_INET, AF_INET6. Left out on purpose: AF_VSOCK reaches the hypervisor, AF_PACKET the wire, AF_ALG the kernel's crypto. */
const SOCKET_FAMILIES = [1, 2, 10];
const AF_NETLINK = 16;
const NETLINK_ROUTE = 0;
/** Linux, Linux32 and their no-randomisation variants, and "just ask": what C libraries and debuggers use. */
const PERSONALITIES = [0, 8, 0x20000, 0x20008, 0xffffffff];

const architectures: Partial<Record<NodeJS.Architecture, string>> = {
  x64: 'SCMP_ARCH_X86_64',
  arm64: 'SCMP_ARCH_AARCH64',
  riscv64: 'SCMP_ARCH_RISCV64',
  ppc64: 'SCMP_ARCH_PPC64LE',
  s390x: 'SCMP_ARCH_S390X',
  loong64: 'SCMP_ARCH_LOONGARCH64',
};

/**
 * The system-call filter of a sandbox on this machine's architecture. Only the native calling convention is listed, so 32-bit
 * programs do not run: half the kernel's entry points are closed, and the filter loads in a third of the time.
 * `namespaces`: as in `SandboxSpec`. Throws a RangeError on an architecture without a filter, since running unfiltered is not an option.
 */
export function seccompProfile(
  arch: NodeJS.Architecture,
  { namespaces = false }: { namespaces?: boolean | undefined } = {},
): SeccompProfile {
  const native = architectures[arch];
  if (!native) throw new RangeError(`no system-call filter for the architecture ${arch}`);
  const extra: Partial<Record<string, string[]>> = profile.allowOn;
  // On s390x clone takes its flags second.
  const cloneFlags = arch === 's390x' ? 1 : 0;
  const closedFlags = namespaces ? OTHER_NAMESPACE_FLAGS : NAMESPACE_FLAGS;
  const without = (index: number) => [{ index, value: closedFlags, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }];
  return {
    defaultAction: REFUSE,
    defaultErrnoRet: ENOSYS,
    architectures: [native],
    syscalls: [
      { names: [...profile.allow, ...(extra[arch] ?? [])], action: ALLOW },
      {
        names: namespaces ? profile.refuse.filter((name) => !CONFINING.includes(name)) : profile.refuse,
        action: REFUSE,
        errnoRet: EPERM,
      },
      ...(namespaces
        ? [
            { names: ['unshare'], action: ALLOW, args: without(0) },
            { names: ['chroot'], action: ALLOW },
          ]
        : []),
      // clone3 hides its flags behind a pointer; with ENOSYS every C library falls back to clone.
      { names: ['clone3'], action: REFUSE, errnoRet: ENOSYS },
      { names: ['clone'], action: ALLOW, args: without(cloneFlags) },
      ...SOCKET_FAMILIES.map((family) => ({
        names: ['socket'],
        action: ALLOW,
        args: [{ index: 0, value: family, op: 'SCMP_CMP_EQ' }],
      })),
      {
        names: ['socket'],
        action: ALLOW,
        args: [
          { index: 0, value: AF_NETLINK, op: 'SCMP_CMP_EQ' },
          { index: 2, value: NETLINK_ROUTE, op: 'SCMP_CMP_EQ' },
        ],
      },
      ...PERSONALITIES.map((value) => ({
        names: ['personality'],
        action: ALLOW,
        args: [{ index: 0, value, op: 'SCMP_CMP_EQ' }],
      })),
    ],
  };
}
