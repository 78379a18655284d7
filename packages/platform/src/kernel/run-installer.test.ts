import { expect, it } from 'vitest';
import { runInstaller } from './run-installer.ts';

it('says that there is no such program, and what one said at its end', async ({ signal }) => {
  await expect(runInstaller('no-such-installer', [], signal)).rejects.toThrow('no-such-installer failed');
  await expect(runInstaller('sh', ['-c', 'echo no route >&2; exit 3'], signal)).rejects.toThrow('no route');
});
