import { describe, expect, it } from 'vitest';
import { ReservedMemory } from './reserved-memory.ts';
import type { Sandbox, SandboxExit, SandboxProvider, SandboxSpec } from './sandbox.ts';
import { smallSpec } from './testing/small-spec.ts';

const MIB = 2 ** 20;
const image = {
  digest: 'sha256:x',
  rootfs: '/r',
  config: { entrypoint: [], cmd: [], env: [], workingDir: '', user: '' },
};

/** A provider whose sandboxes end when the test says so; `left` are those of an earlier run of the server. */
function fake(left: Sandbox[] = []) {
  const ends = new Map<string, () => void>();
  const specs: SandboxSpec[] = [];
  const sandbox = (id: string, labels: Record<string, string>): Sandbox => {
    const exited = new Promise<SandboxExit>((resolve) => {
      ends.set(id, () => resolve({ exitCode: 0, outOfMemory: false }));
    });
    return { id, labels, exited } as unknown as Sandbox;
  };
  const provider = {
    name: 'oci',
    async create(spec: SandboxSpec) {
      specs.push(spec);
      if (spec.id === 'fails') throw new Error('no');
      return sandbox(spec.id, spec.labels);
    },
    async *reattach() {
      yield* left;
    },
  } as unknown as SandboxProvider;
  const end = async (id: string): Promise<void> => {
    ends.get(id)?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { reserved: new ReservedMemory(provider, 100 * MIB), specs, end, sandbox };
}
const asking = (id: string, mebibytes: number): SandboxSpec =>
  smallSpec(image, id, { limits: { ...smallSpec(image, id).limits, reservedMemoryBytes: mebibytes * MIB } });

describe('reserved memory', () => {
  it('is promised as long as there is some, and free again when a sandbox ends or could not be made', async () => {
    const { reserved, specs, end } = fake();
    await reserved.create(asking('a', 60));
    expect(reserved.roomToPool).toBe(false);
    await expect(reserved.create(asking('b', 41))).rejects.toMatchObject({ reason: 'capacity' });
    await reserved.create(asking('none', 0));
    await expect(reserved.create(asking('fails', 40))).rejects.toThrow('no');
    await reserved.create(asking('b', 40));
    await end('a');
    expect(reserved.roomToPool).toBe(true);
    await reserved.create(asking('c', 60));
    expect(specs.map(({ id }) => id)).toEqual(['a', 'none', 'fails', 'b', 'c']);
  });

  it('is still promised after a restart of the server', async () => {
    const before = fake();
    const survivor = await before.reserved.create(asking('a', 60));
    const { reserved } = fake([survivor]);
    for await (const one of reserved.reattach()) expect(one).toBe(survivor);
    await expect(reserved.create(asking('b', 41))).rejects.toMatchObject({ reason: 'capacity' });
    await before.end('a');
    await reserved.create(asking('b', 41));
  });
});
