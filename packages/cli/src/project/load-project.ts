import { readFile, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { ValidateFunction } from 'ajv';
import schema from '../../schema/agentcore.schema.json' with { type: 'json' };
import { CliError } from '../cli-error.ts';
import { schemaProblems, wrongFile } from '../schema-problems.ts';
import type { Project, ProjectFile } from './project.ts';

const NAME = 'a name is a letter or "_", then letters, digits and "_", at most 100';
let compiled: Promise<ValidateFunction<ProjectFile>> | undefined;

// Loaded when a project is read: commands that read none start a third faster without it.
function validator(): Promise<ValidateFunction<ProjectFile>> {
  compiled ??= import('ajv').then(({ Ajv }) =>
    new Ajv({ allErrors: true, strict: true, allowUnionTypes: true }).compile<ProjectFile>(schema),
  );
  return compiled;
}

/** The project whose `agentcore.json` is in `cwd` or a folder above; undefined when there is none. Rejects with a `CliError` (usage) when it is wrong. */
export async function findProject(cwd: string): Promise<Project | undefined> {
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const path = join(folder, 'agentcore.json');
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
      throw new CliError('usage', `${path} cannot be read: ${error.message}`);
    });
    if (text !== undefined) {
      const file = await parseProject(text, path);
      await checkFiles({ folder, file }, path);
      return { folder, file };
    }
    if (folder === dirname(folder)) return undefined;
  }
}

/** As `findProject`, but there has to be one. */
export async function requireProject(cwd: string): Promise<Project> {
  const project = await findProject(cwd);
  if (project) return project;
  throw new CliError(
    'usage',
    'There is no agentcore.json here or in a folder above.',
    'Go into your agent’s folder, or make one with: agentcore create my-agent',
  );
}

/** Decodes the text of an agentcore.json; rejects with a `CliError` (usage) that names each wrong field. */
export async function parseProject(text: string, path: string): Promise<ProjectFile> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new CliError('usage', `${path} is not valid JSON: ${error instanceof Error ? error.message : error}`);
  }
  const validate = await validator();
  const problems = validate(value) ? [] : schemaProblems(validate.errors ?? [], schema, NAME);
  if (problems.length === 0 && validate(value)) {
    problems.push(...contradictions(value));
    if (problems.length === 0) return value;
  }
  throw wrongFile(path, problems);
}

function contradictions(file: ProjectFile): string[] {
  const problems: string[] = [];
  if (file.language === 'containerfile') {
    if (file.entrypoint)
      problems.push('entrypoint: cannot be used with language containerfile; the image names its own command');
    if (file.runtime) problems.push('runtime: cannot be used with language containerfile; the image brings its own');
    if (file.image && file.containerfile) problems.push('image and containerfile: give only one of them');
  } else {
    if (!file.entrypoint)
      problems.push('entrypoint: is missing; name the file to run, such as "index.ts" or "main.py"');
    if (file.image) problems.push('image: needs language containerfile');
    const family = file.language === 'python' ? 'PYTHON_' : 'NODE_';
    if (file.runtime && !file.runtime.startsWith(family)) {
      problems.push(`runtime: ${file.runtime} does not run ${file.language}`);
    }
    if (file.entrypoint?.split('/').includes('..')) problems.push('entrypoint: must stay inside the folder');
  }
  for (const name of file.secrets ?? [])
    if (file.environment && name in file.environment)
      problems.push(`secrets: ${name} is also in environment; remove it there`);
  const { idleRuntimeSessionTimeout: idle, maxLifetime } = file.lifecycle ?? {};
  if (idle !== undefined && maxLifetime !== undefined && idle > maxLifetime) {
    problems.push('lifecycle: idleRuntimeSessionTimeout must not be more than maxLifetime');
  }
  return problems;
}

async function checkFiles({ folder, file }: Project, path: string): Promise<void> {
  const named =
    file.language !== 'containerfile'
      ? { field: 'entrypoint', file: file.entrypoint ?? '' }
      : file.image
        ? undefined
        : { field: 'containerfile', file: file.containerfile ?? 'Containerfile' };
  if (!named) return;
  const info = await stat(join(folder, named.file)).catch(() => undefined);
  if (!info?.isFile())
    throw new CliError('usage', `${path} names ${named.field} "${named.file}", but there is no such file.`);
}
