import type { SandboxImage, SandboxSpec, Volume } from './sandbox.ts';
import { checkSpec, checkStaged } from './spec-check.ts';

/** A root file system that is unpacked and ready to be used read-only by many sandboxes. */
export interface PreparedImage {
  /** sha256:… of the manifest; the same digest is always the same files. */
  digest: string;
  /** Absolute path of the unpacked, read-only root file system. Empty for the `process` provider's host image. */
  rootfs: string;
  config: ImageRunConfig;
}

/** The part of an OCI image config that matters for running it. */
export interface ImageRunConfig {
  entrypoint: string[];
  cmd: string[];
  /** `NAME=value` */
  env: string[];
  workingDir: string;
  /** `uid`, `uid:gid`, `name` or `name:group`; empty means the platform's unprivileged default. */
  user: string;
}

/** A volume, found on this machine. */
export interface HostMount {
  /** Absolute path on the host. */
  source: string;
  /** Absolute path inside. */
  target: string;
  readOnly: boolean;
  /** Mounts that the host makes below `source` later appear inside too. */
  propagate?: boolean;
  /**
   * Called before the first process starts, with a file that stands for the sandbox's user namespace as long as the sandbox lives; not called
   * when it has none of its own. The sandbox does not start when this rejects.
   */
  onUserNamespace?(file: string): Promise<void>;
}

/**
 * Where a provider that makes its sandboxes on this machine finds what specifications name; it is given to it when it is made. A provider
 * that makes them elsewhere has a way of its own to images and volumes, and needs none.
 */
export interface HostStage {
  /** Unpacks the image if that was not done yet. Rejects when it is not in the platform's store, or when it cannot be unpacked. */
  image(image: SandboxImage, signal?: AbortSignal): Promise<PreparedImage>;
  /** Makes the volume ready for the sandbox of that id. Rejects with SandboxError when it is not there. */
  volume(volume: Volume, sandboxId: string): Promise<HostMount>;
}

/** A specification whose image and volumes were found on this machine. */
export interface StagedSpec extends Omit<SandboxSpec, 'image' | 'volumes'> {
  image: PreparedImage;
  mounts: HostMount[];
}

/** Finds here what the specification names. Rejects with SandboxError `refused` for one that cannot be honoured, and as the stage does. */
export async function stageSpec(stage: HostStage, spec: SandboxSpec, signal?: AbortSignal): Promise<StagedSpec> {
  checkSpec(spec);
  const { volumes, ...rest } = spec;
  const image = await stage.image(spec.image, signal);
  const mounts = await Promise.all(volumes.map((volume) => stage.volume(volume, spec.id)));
  const staged = { ...rest, image, mounts };
  await checkStaged(staged);
  return staged;
}
