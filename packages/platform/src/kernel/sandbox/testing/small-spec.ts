import type { PreparedImage, SandboxSpec } from '../sandbox.ts';

const MIB = 1024 * 1024;

/** A specification that asks for little; tests change what they are about. */
export function smallSpec(image: PreparedImage, id: string, change: Partial<SandboxSpec> = {}): SandboxSpec {
  return {
    id,
    image,
    env: {},
    mounts: [],
    network: { egress: 'none', allowCidrs: [], hostPorts: [] },
    labels: {},
    ...change,
    limits: { cpu: 1, memoryBytes: 64 * MIB, pids: 64, diskBytes: 32 * MIB, openFiles: 256, ...change.limits },
  };
}
