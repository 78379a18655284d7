import type { HostMount, PreparedImage, StagedSpec } from '../host-stage.ts';
import type { SandboxSpec } from '../sandbox.ts';
import { testStage } from './test-stage.ts';

const MIB = 1024 * 1024;

/** What tests say otherwise than `smallSpec`; image and mounts as they are on this machine. */
export interface SpecChange extends Partial<Omit<SandboxSpec, 'image'>> {
  image?: PreparedImage;
  mounts?: HostMount[];
}

/** A specification that asks for little; tests change what they are about. The names that it has for image and mounts are in `testStage`. */
export function smallSpec(image: PreparedImage, id: string, change: SpecChange = {}): SandboxSpec {
  const { image: other, mounts = [], volumes = [], ...rest } = change;
  return {
    id,
    image: testStage.nameImage(other ?? image),
    env: {},
    network: { egress: 'none', allowCidrs: [], hostPorts: [] },
    labels: {},
    ...rest,
    volumes: [...volumes, ...mounts.map((mount) => testStage.nameMount(mount))],
    limits: { cpu: 1, memoryBytes: 64 * MIB, pids: 64, diskBytes: 32 * MIB, openFiles: 256, ...change.limits },
  };
}

/** The same as a provider of this machine has it once the image was found. */
export function smallStaged(image: PreparedImage, id: string, change: Omit<SpecChange, 'volumes'> = {}): StagedSpec {
  const { volumes: _, ...spec } = smallSpec(image, id, change);
  return { ...spec, image, mounts: change.mounts ?? [] };
}
