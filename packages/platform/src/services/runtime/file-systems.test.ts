import { expect, it } from 'vitest';
import { FileSystems, type FileSystemsDeps } from './file-systems.ts';

const arn = 'arn:aws:elasticfilesystem:us-east-1:123456789012:access-point/fsap-00000001';
const configured = {
  roleArn: 'arn:aws:iam::123456789012:role/any',
  filesystemConfigurations: [{ efsAccessPoint: { accessPointArn: arn, mountPath: '/mnt/shared' } }],
};

const problems = (places: Partial<FileSystemsDeps['places']>) => {
  const known = {
    find: () => 'fsap-00000001',
    ids: () => ['fsap-00000001'],
    unavailable: () => undefined,
    ...places,
  };
  const systems = new FileSystems({ unavailable: undefined, storage: undefined, places: known, roleMay: () => true });
  return systems.problems(configured);
};

it('refuses a shared place that this machine cannot mount, with the command that would change it', () => {
  expect(problems({})).toEqual([]);
  expect(problems({ unavailable: () => '/dev/fuse is missing (modprobe fuse)' })).toEqual([
    {
      name: 'filesystemConfigurations[0]',
      message: 'is not offered on this server: /dev/fuse is missing (modprobe fuse)',
    },
  ]);
});
