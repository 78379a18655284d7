const MiB = 1024 ** 2;
const GiB = 1024 ** 3;

/** Bounds on what the image store takes in; all sizes in bytes. */
export interface ImageLimits {
  /** Layers and config of one image as stored, and again its files once unpacked. */
  imageBytes: number;
  /** Files, directories and links in one image. */
  imageEntries: number;
  /** One manifest or index document. */
  manifestBytes: number;
  /** One image config document. */
  configBytes: number;
  /** A zip of code as uploaded. */
  zipBytes: number;
  /** The same zip unpacked. */
  zipUnpackedBytes: number;
  zipEntries: number;
}

export const DEFAULT_IMAGE_LIMITS: ImageLimits = {
  imageBytes: 2 * GiB,
  imageEntries: 500_000,
  manifestBytes: 4 * MiB,
  configBytes: 8 * MiB,
  zipBytes: 250 * MiB,
  zipUnpackedBytes: 750 * MiB,
  zipEntries: 100_000,
};

/** `2147483648` -> `2 GiB`, for messages. */
export function describeBytes(bytes: number): string {
  if (bytes >= GiB) return `${Number((bytes / GiB).toFixed(1))} GiB`;
  if (bytes >= MiB) return `${Number((bytes / MiB).toFixed(1))} MiB`;
  return `${bytes} bytes`;
}
