import type { ImagesRoom } from './kernel/images/index.ts';
import type { HostMount, HostStage, PreparedImage } from './kernel/sandbox/host-stage.ts';
import { SandboxError, type SandboxImage, type Volume } from './kernel/sandbox/index.ts';
import type { SessionStorage } from './kernel/session-storage/index.ts';
import type { SharedPlaces } from './kernel/shared-places/index.ts';

/** The rooms that have the images and the volumes. */
export interface StageRooms {
  images: Pick<ImagesRoom, 'prepare' | 'prepareCommon'>;
  /** Undefined where sessions have none. */
  storage: Pick<SessionStorage, 'mount'> | undefined;
  places: Pick<SharedPlaces, 'source'>;
}

/** Images and volumes as paths of this machine, by the rooms that have them. The provider is there first: nothing is found before `open`. */
export class LocalStage implements HostStage {
  #rooms: StageRooms | undefined;

  open(rooms: StageRooms): void {
    this.#rooms = rooms;
  }

  /** Rejects with `ImageError`. */
  async image({ digest, common, askedBy }: SandboxImage, signal?: AbortSignal): Promise<PreparedImage> {
    const { images } = this.#opened();
    return common ? images.prepareCommon(digest, signal) : images.prepare(digest, signal, askedBy);
  }

  async volume(volume: Volume, sandboxId: string): Promise<HostMount> {
    const { storage, places } = this.#opened();
    if (volume.kind === 'shared-place') {
      const { accessPoint, target, readOnly } = volume;
      return { source: await places.source(accessPoint), target, readOnly };
    }
    if (!storage) throw new SandboxError('refused', 'Sessions have no storage on this server.');
    return storage.mount(sandboxId, volume.target);
  }

  #opened(): StageRooms {
    if (this.#rooms) return this.#rooms;
    throw new SandboxError('unavailable', 'The server is starting: images and volumes are not there yet.');
  }
}
