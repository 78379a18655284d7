import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseProject } from './load-project.ts';
import type { Project } from './project.ts';

/** What is added to the lists of `agentcore.json`. */
export interface ProjectAdditions {
  secrets: string[];
  egress: string[];
}

/** The project with these in its lists too. Rejects with a `CliError` (usage) when one cannot be there; nothing is written. */
export async function withAdditions({ folder, file }: Project, additions: ProjectAdditions): Promise<Project> {
  const added = add(file, additions);
  return { folder, file: await parseProject(JSON.stringify(added), join(folder, 'agentcore.json')) };
}

/** Writes them into `agentcore.json`; whatever else stands there stays. Nothing is written when all of them are there. */
export async function keepAdditions({ folder }: Project, additions: ProjectAdditions): Promise<void> {
  const path = join(folder, 'agentcore.json');
  const before: object = JSON.parse(await readFile(path, 'utf8'));
  const after = add(before, additions);
  if (JSON.stringify(after) === JSON.stringify(before)) return;
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(after, undefined, 2)}\n`);
  await rename(draft, path);
}

function add(file: Partial<ProjectAdditions> & object, { secrets, egress }: ProjectAdditions): object {
  const both = (kept: string[] = [], more: string[]): string[] => [...new Set([...kept, ...more])];
  return {
    ...file,
    ...(secrets.length > 0 && { secrets: both(file.secrets, secrets) }),
    ...(egress.length > 0 && { egress: both(file.egress, egress) }),
  };
}
