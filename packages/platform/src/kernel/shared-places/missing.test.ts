import { expect, it } from 'vitest';
import { missingFor } from './missing.ts';

it('names what a kind of place needs of the machine and the command that would get it', () => {
  const nothing = (): boolean => false;
  expect(missingFor('directory', nothing)).toEqual([]);
  expect(missingFor('nfs', nothing)).toEqual([{ what: 'mount.nfs', remedy: 'apt-get install nfs-common' }]);
  expect(missingFor('objects', nothing)).toMatchObject([
    { what: '/dev/fuse', remedy: expect.stringContaining('modprobe fuse') },
  ]);
  expect(missingFor('objects', (file) => file === '/dev/fuse')).toEqual([]);
  expect(missingFor('nfs', (file) => file === '/usr/sbin/mount.nfs')).toEqual([]);
});
