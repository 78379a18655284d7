import { getPriority } from 'node:os';
import { expect, it } from 'vitest';
import { runInstaller } from './run-installer.ts';

it('runs behind all else', async ({ signal }) => {
  // The program may begin before its priority is set.
  const script = `until [ "$(nice)" -gt ${getPriority()} ]; do sleep 0.01; done`;
  await expect(runInstaller('sh', ['-c', script], signal)).resolves.toBeUndefined();
});

it('says that there is no such program, and what one said at its end', async ({ signal }) => {
  await expect(runInstaller('no-such-installer', [], signal)).rejects.toThrow('no-such-installer failed');
  await expect(runInstaller('sh', ['-c', 'echo no route >&2; exit 3'], signal)).rejects.toThrow('no route');
});
