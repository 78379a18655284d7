import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { CliError } from '../cli-error.ts';
import { runtimeName } from './project.ts';

/** What `create` can begin with; each is a folder of `templates/`. */
export const templates = [
  { value: 'typescript', label: 'TypeScript, with the agentplatform package' },
  { value: 'python', label: 'Python, standard library only' },
  { value: 'containerfile', label: 'Any language, with a Containerfile of your own' },
] as const;

export type Template = (typeof templates)[number]['value'];

/** Where in the project the SDK's package is put, and so what its package.json asks for. */
export const sdkFile = 'vendor/agentplatform.tgz';

/** Why a project cannot be called that; undefined when it can. */
export function nameProblem(name: string): string | undefined {
  if (/^[a-zA-Z][a-zA-Z0-9_-]{0,47}$/.test(name)) return undefined;
  return 'A name begins with a letter, followed by letters, digits, "-" and "_", at most 48 characters.';
}

/** Writes a new project into `folder`, which must be missing or empty; `agentcore` is what this program is called. Resolves with the files written. */
export async function createProject(folder: string, template: Template, agentcore: string): Promise<string[]> {
  const present = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error.code === 'ENOTDIR' ? new CliError('usage', `${folder} is a file.`) : error;
  });
  if (present.length > 0)
    throw new CliError('usage', `${folder} is not empty.`, 'Choose another name, or empty that folder.');
  await mkdir(folder, { recursive: true });
  const source = join(import.meta.dirname, '../../templates', template);
  const values: Record<string, string> = {
    __NAME__: runtimeName(basename(folder)),
    __PACKAGE__: basename(folder).toLowerCase(),
    __AGENTCORE__: agentcore,
    __SDK__: `file:${sdkFile}`,
  };
  const written: string[] = [];
  for (const name of (await readdir(source)).sort()) {
    const text = (await readFile(join(source, name), 'utf8')).replace(/__[A-Z]+__/g, (word) => values[word] ?? word);
    // npm leaves files called .gitignore out of what it publishes.
    const target = name === 'gitignore' ? '.gitignore' : name;
    await writeFile(join(folder, target), text);
    written.push(target);
  }
  return written;
}
