import { existsSync } from 'node:fs';
import type { Place } from './places.ts';

/** What a machine lacks, and the command that would get it. */
export interface Missing {
  what: string;
  remedy: string;
}

const NEEDS: Record<Place['kind'], { files: string[]; missing: Missing } | undefined> = {
  directory: undefined,
  nfs: {
    files: ['/sbin/mount.nfs', '/usr/sbin/mount.nfs'],
    missing: { what: 'mount.nfs', remedy: 'apt-get install nfs-common' },
  },
  objects: {
    files: ['/dev/fuse'],
    missing: { what: '/dev/fuse', remedy: 'modprobe fuse; for a platform in a container: --device /dev/fuse' },
  },
};

/** What this machine would have to have for a place of that kind; empty when it has it. */
export function missingFor(kind: Place['kind'], exists: (file: string) => boolean = existsSync): Missing[] {
  const needs = NEEDS[kind];
  return needs && !needs.files.some(exists) ? [needs.missing] : [];
}
