import { copyFile, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Project } from '../project/project.ts';
import { bundleCode } from './bundle-code.ts';
import { projectFiles } from './project-files.ts';
import { defaultPythonRuntime, versionOf } from './python.ts';
import { pythonPackages } from './python-packages.ts';

export interface StagedCode {
  /** The file to run, relative to the stage. */
  entryPoint: string;
  /** NODE_22, PYTHON_3_11 … */
  runtime: string;
  /** Packages of npm that it imports from a node_modules beside it or above, as they are installed. */
  external: string[];
  /** A folder of packages for Python that run beside it. */
  packages?: string | undefined;
}

export interface StageOptions {
  signal: AbortSignal;
  /** Gets what there is to say while it takes its time. */
  say?: (text: string) => void;
}

/** Puts together in the empty folder `stage` what runs in the sandbox: the project's files, and its code as one module; neither `external` nor `packages`. */
export async function stageCode(
  project: Project,
  stage: string,
  { signal, say = () => undefined }: StageOptions,
): Promise<StagedCode> {
  const { folder, file } = project;
  if (file.language === 'python') {
    const runtime = file.runtime ?? (await defaultPythonRuntime(folder));
    const packages = await pythonPackages({ folder, version: versionOf(runtime), signal, say });
    await copyFiles(project, stage);
    return { entryPoint: file.entrypoint ?? '', runtime, external: [], packages };
  }
  await copyFiles(project, stage);
  return { ...(await bundleCode(project, stage)), runtime: file.runtime ?? 'NODE_22' };
}

async function copyFiles(project: Project, stage: string): Promise<void> {
  for (const path of await projectFiles(project)) {
    const target = join(stage, path);
    await mkdir(dirname(target), { recursive: true });
    await copyFile(join(project.folder, path), target);
  }
}
