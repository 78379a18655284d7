import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseCniResult } from './network/cni.ts';
import { resolveImageUser } from './oci/image-user.ts';
import { mergeEnv, ociConfig } from './oci/oci-spec.ts';
import { seccompProfile } from './oci/seccomp.ts';
import { readRecord, type SandboxRecord, writeRecord } from './records/sandbox-record.ts';
import { smallSpec, smallStaged } from './testing/small-spec.ts';

async function inTemp<T>(run: (dir: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'sandbox-formats-'));
  try {
    return await run(dir);
  } finally {
    await rm(dir, { recursive: true });
  }
}

describe('result of the network plugin', () => {
  const result = {
    interfaces: [
      { name: 'veth1', mac: 'x' },
      { name: 'eth0', sandbox: '/proc/1/ns/net' },
    ],
    ips: [{ version: '4', address: '10.1.2.3/22' }],
  };
  it("gives the address and the host's interface", () => {
    expect(parseCniResult(JSON.stringify(result))).toEqual({ ip: '10.1.2.3', hostInterface: 'veth1' });
  });
  it('is refused when it is anything else, above all a name that could carry rules', () => {
    for (const bad of [
      '{}',
      '[]',
      'null',
      '{"ips":[{"address":"x"}]}',
      JSON.stringify({ ...result, interfaces: [{ name: 'a" } ; flush ruleset' }] }),
    ]) {
      expect(() => parseCniResult(bad)).toThrow(TypeError);
    }
    fc.assert(
      fc.property(fc.json(), (json) => {
        try {
          parseCniResult(json);
          return false;
        } catch (error) {
          return error instanceof TypeError;
        }
      }),
    );
  });
});

describe('user of an image', () => {
  it.each([
    ['', { uid: 10_001, gid: 10_001, isDefault: true }],
    ['app', { uid: 1500, gid: 1600, home: '/home/app', isDefault: false }],
    ['1500', { uid: 1500, gid: 1600, home: '/home/app' }],
    ['77', { uid: 77, gid: 0 }],
    ['77:88', { uid: 77, gid: 88 }],
    ['app:staff', { uid: 1500, gid: 1700 }],
    ['root', { uid: 0, gid: 0 }],
  ])('"%s"', async (user, expected) => {
    await inTemp(async (dir) => {
      await mkdir(join(dir, 'etc'));
      await writeFile(
        join(dir, 'etc/passwd'),
        'root:x:0:0::/root:/bin/sh\napp:x:1500:1600::/home/app:\nbroken\n::::\n',
      );
      await writeFile(join(dir, 'etc/group'), 'staff:x:1700:\n');
      expect(await resolveImageUser(dir, user)).toMatchObject(expected);
    });
  });

  it.each(['nobody', 'app:nogroup', ':', 'a:b:c', '70000', '1:70000', '99999999999', '-1', '1e3'])(
    '"%s" is refused',
    async (user) => {
      await inTemp(async (dir) => {
        await mkdir(join(dir, 'etc'));
        await writeFile(join(dir, 'etc/passwd'), 'app:x:1500:1600::/home/app:\n');
        await expect(resolveImageUser(dir, user)).rejects.toMatchObject({ reason: 'refused' });
      });
    },
  );

  it('is not looked up in a file of the host that the image links to', async () => {
    await inTemp(async (dir) => {
      await mkdir(join(dir, 'etc'));
      await symlink('/etc/passwd', join(dir, 'etc/passwd'));
      await expect(resolveImageUser(dir, 'daemon')).rejects.toMatchObject({ reason: 'refused' });
    });
  });
});

describe('environment', () => {
  it('lets the later win and keeps values whole', () => {
    expect(mergeEnv(['A=1', 'B=x=y', 'broken', '=z', 'A=2'], { B: '', C: 'new' })).toEqual(['A=2', 'B=', 'C=new']);
  });
});

describe('runtime configuration', () => {
  const image = {
    digest: 'sha256:x',
    rootfs: '/r',
    config: { entrypoint: ['/e'], cmd: ['c'], env: [], workingDir: '', user: '' },
  };
  const config = (change: Partial<Parameters<typeof ociConfig>[0]> = {}) =>
    JSON.stringify(
      ociConfig({
        spec: smallStaged(image, 'x'),
        user: { uid: 1, gid: 2, home: undefined, isDefault: true },
        hostname: 'h',
        cgroupsPath: '/p/x',
        rootPath: '/root',
        userNamespace: '/u',
        networkNamespace: '/n',
        ids: { first: 7, own: false },
        repeatMappings: true,
        seccomp: seccompProfile('x64'),
        swapLimit: true,
        own: { threads: 0, memoryBytes: 0 },
        ...change,
      }),
    );
  it('says entrypoint and cmd, limits, and no capability', () => {
    const text = config();
    expect(text).toContain('"args":["/.agentplatform-init","--","/e","c"]');
    expect(text).toContain('"memory":{"limit":67108864,"swap":67108864}');
    const promised = { limits: { ...smallSpec(image, 'x').limits, reservedMemoryBytes: 2 ** 24 } };
    expect(config({ spec: smallStaged(image, 'x', promised) })).toContain('"limit":67108864,"reservation":16777216');
    expect(text).toContain('"pids":{"limit":64}');
    expect(text).toContain('"bounding":[]');
    expect(text).not.toContain('CAP_');
  });
  it('leaves out what the kernel or the runtime refuses', () => {
    expect(config({ swapLimit: false })).not.toContain('"swap"');
    // What the runtime needs itself is not the sandbox's to lack.
    const own = config({ own: { threads: 300, memoryBytes: 2 ** 26 } });
    expect(own).toContain(`"pids":{"limit":${64 + 300}}`);
    expect(own).toContain(`"memory":{"limit":${2 ** 27},"swap":${2 ** 27}}`);
    expect(config({ userNamespace: undefined })).not.toContain('"type":"user"');
    expect(config()).toContain('"uidMappings":[{"containerID":0,"hostID":7,"size":1}');
    expect(config({ repeatMappings: false })).not.toContain('uidMappings');
  });
});

describe('system-call filter', () => {
  it('exists for each architecture it names, and for no other', () => {
    for (const arch of ['x64', 'arm64'] as const) {
      const allowed = seccompProfile(arch)
        .syscalls.filter((rule) => rule.action === 'SCMP_ACT_ALLOW' && !rule.args)
        .flatMap((rule) => rule.names);
      expect(allowed).toEqual(expect.arrayContaining(['read', 'execve', 'futex', 'openat']));
      for (const closed of [
        'mount',
        'unshare',
        'setns',
        'keyctl',
        'add_key',
        'bpf',
        'clone',
        'clone3',
        'socket',
        'io_uring_setup',
        'userfaultfd',
        'kexec_load',
        'init_module',
        'reboot',
        'ptrace_x',
      ]) {
        expect(allowed).not.toContain(closed);
      }
    }
    expect(() => seccompProfile('mips')).toThrow(RangeError);
  });

  it('opens namespaces of users, processes and networks alone, and only to what confines its own processes', () => {
    const flags = (options?: { namespaces: boolean }) =>
      seccompProfile('x64', options).syscalls.flatMap(({ names, args }) =>
        names.includes('clone') || names.includes('unshare') ? (args ?? []).map(({ value }) => value) : [],
      );
    const namespaces = { mount: 0x2_0000, cgroup: 0x200_0000, uts: 0x400_0000, ipc: 0x800_0000 };
    const opened = { user: 0x1000_0000, pid: 0x2000_0000, net: 0x4000_0000 };
    expect(flags()).toEqual([0x7e02_0000]);
    for (const closed of flags({ namespaces: true })) {
      for (const flag of Object.values(namespaces)) expect(closed & flag).toBe(flag);
      for (const flag of Object.values(opened)) expect(closed & flag).toBe(0);
    }
    expect(flags({ namespaces: true })).toHaveLength(2);
  });
});

describe('record of a sandbox', () => {
  const record: SandboxRecord = {
    id: 'a',
    labels: { x: 'y' },
    isolation: 'container',
    owner: { pid: 7, startedAt: 'boot:9' },
    slot: 's',
    ip: '10.0.0.1',
    hostInterface: 'veth0',
    network: {
      egress: 'restricted',
      allowCidrs: ['10.0.0.0/8'],
      hostPorts: [1],
      endpoints: [{ host: 'a.test', addresses: ['10.1.2.3'], port: 80 }],
      sandboxEndpoint: true,
    },
    firstId: 2_000_224_256,
    openFiles: 64,
  };
  it('comes back as it was', () =>
    inTemp(async (dir) => {
      await writeRecord(dir, record);
      expect(await readRecord(dir)).toEqual(record);
    }));
  it('that is not whole is none', () =>
    inTemp(async (dir) => {
      expect(await readRecord(dir)).toBeUndefined();
      await fc.assert(
        fc.asyncProperty(
          fc.oneof(
            fc.json(),
            fc.string(),
            fc.nat(150).map((length) => JSON.stringify(record).slice(0, length)),
          ),
          async (text) => {
            await writeFile(join(dir, 'sandbox.json'), text);
            expect(await readRecord(dir)).toBeUndefined();
          },
        ),
        { numRuns: 50 },
      );
    }));
});
