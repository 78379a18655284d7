import { expect, it } from 'vitest';
import { isDiskFull } from '../../system-error.ts';
import { makeRoot } from './owner.ts';

const request: Parameters<typeof makeRoot>[0] = {
  dir: '/d',
  image: '/i',
  diskMount: '/m',
  rootMount: '/r',
  diskBytes: 1,
  diskTemplate: undefined,
  mapRoot: false,
  uid: 0,
  gid: 0,
  workingDir: '/',
  ownWorkingDir: false,
  files: [],
  mountTargets: [],
  command: { file: '/bin/true', path: [] },
};

/** What comes of a file system whose maker says `words`. */
const outcome = (words: string): Promise<unknown> =>
  makeRoot(request, async () => ({ stdout: `error ${encodeURIComponent(words)}\n`, stderr: '', code: 0 })).then(
    () => expect.unreachable('it was expected to be refused'),
    (error: unknown) => error,
  );

it('knows a full disk in the words of the owner, and takes nothing else for one', async () => {
  const full = await outcome('/data/sandboxes/x/disk: No space left on device');
  expect(full).toMatchObject({ reason: 'failed', message: expect.stringContaining('No space left on device') });
  expect(isDiskFull(full)).toBe(true);
  expect(isDiskFull(await outcome('/data/sandboxes/x/disk: Permission denied'))).toBe(false);
});
