import { readFile } from 'node:fs/promises';
import { unescapeMount } from '../sandbox/index.ts';

/** One mount as this process sees it (proc_pid_mountinfo(5)). */
export interface MountPoint {
  path: string;
  /** `major:minor` of what is mounted. */
  device: string;
  /** Whether later mounts below it are passed on to others. */
  shared: boolean;
}

/** The mounts of this process, in the order of `/proc/self/mountinfo`: of several on one path the last is the one that is seen. */
export async function readMounts(file = '/proc/self/mountinfo'): Promise<MountPoint[]> {
  const text = await readFile(file, 'utf8');
  return text.split('\n').flatMap((line) => {
    const [before = ''] = line.split(' - ');
    const fields = before.split(' ');
    const [device, path] = [fields[2], fields[4]];
    if (device === undefined || path === undefined) return [];
    const shared = fields.slice(6).some((tag) => tag.startsWith('shared:'));
    return [{ path: unescapeMount(path), device, shared }];
  });
}

/** The file behind a loop device, as it was called when it was attached; undefined for another device. */
export async function backingFile(device: string): Promise<string | undefined> {
  const text = await readFile(`/sys/dev/block/${device}/loop/backing_file`, 'utf8').catch(() => undefined);
  return text?.replace(/\n$/, '').replace(/ \(deleted\)$/, '');
}
