import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The folder in which this program keeps what it makes for a project; made when it is missing, and never under version control. */
export async function stateFolder(folder: string): Promise<string> {
  const path = join(folder, '.agentcore');
  await mkdir(path, { recursive: true });
  await writeFile(join(path, '.gitignore'), '*\n');
  return path;
}
