import { createHash } from 'node:crypto';
import type { HostMount, HostStage, PreparedImage } from '../host-stage.ts';
import { SandboxError, type SandboxImage, type Volume } from '../sandbox.ts';

/** Gives images and directories of this machine names, and providers under test what is meant by them. */
export class TestStage implements HostStage {
  /** By digest. */
  readonly images: Map<string, PreparedImage>;
  /** By access point. */
  readonly mounts: Map<string, HostMount>;

  constructor(images: Iterable<[string, PreparedImage]> = [], mounts: Iterable<[string, HostMount]> = []) {
    this.images = new Map(images);
    this.mounts = new Map(mounts);
  }

  /** The name of an image; those that differ in anything have different ones. */
  nameImage(image: PreparedImage): SandboxImage {
    const digest = `sha256:${hash(image)}`;
    this.images.set(digest, image);
    return { digest };
  }

  /** The name of what is mounted, as of a shared place. */
  nameMount(mount: HostMount): Volume {
    const { target, readOnly } = mount;
    const accessPoint = `fsap-${hash([mount, this.mounts.size]).slice(0, 17)}`;
    this.mounts.set(accessPoint, mount);
    return { kind: 'shared-place', accessPoint, target, readOnly };
  }

  async image({ digest }: SandboxImage): Promise<PreparedImage> {
    return found(this.images.get(digest), digest);
  }

  async volume(volume: Volume): Promise<HostMount> {
    const name = volume.kind === 'shared-place' ? volume.accessPoint : volume.kind;
    return found(this.mounts.get(name), name);
  }
}

/** Of one file of tests: `smallSpec` names what it is given here. */
export const testStage = new TestStage();

function hash(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}

function found<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new SandboxError('refused', `There is nothing by the name of ${name}.`);
  return value;
}
