import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Volume } from '../sandbox.ts';
import { testStage } from './test-stage.ts';

/** A directory below `dir` that anybody may write to, with a file `greeting`; known to `testStage` by the volume's name, and mounted on /mnt/shared. */
export async function sharedVolume(dir: string): Promise<Volume> {
  const source = join(dir, 'shared');
  await mkdir(source, { recursive: true });
  await chmod(source, 0o777);
  await writeFile(join(source, 'greeting'), 'hello\n');
  return testStage.nameMount({ source, target: '/mnt/shared', readOnly: false });
}
