import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { CliError } from '../cli-error.ts';
import { runTool } from './run-tool.ts';

export interface LocalPython {
  command: string;
  /** `3.11` */
  version: string;
}

/** The Python that runs this folder: its virtual environment's, else `python3`, else `python`. Undefined when there is none. */
export async function localPython(folder: string): Promise<LocalPython | undefined> {
  const candidates = [join(folder, '.venv/bin/python'), join(folder, 'venv/bin/python'), 'python3', 'python'];
  for (const command of candidates) {
    const printed = await runTool(command, ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])']).catch(
      () => undefined,
    );
    if (printed) return { command, version: printed.trim() };
  }
  return undefined;
}

const supported = ['3.10', '3.11', '3.12', '3.13', '3.14'];

/** The managed runtime for a folder that names none: the version on this machine if the platform has it, else PYTHON_3_12. */
export async function defaultPythonRuntime(folder: string): Promise<string> {
  const version = (await localPython(folder))?.version;
  return `PYTHON_${(version && supported.includes(version) ? version : '3.12').replace('.', '_')}`;
}

/**
 * Installs what `requirements.txt` names into `stage`, for that runtime's Python. Does nothing when there is no such file.
 * Where another Python version is on this machine, only ready-made wheels can be used.
 */
export async function installRequirements(
  folder: string,
  stage: string,
  runtime: string,
  signal: AbortSignal,
): Promise<void> {
  const requirements = join(folder, 'requirements.txt');
  const present = await access(requirements).then(
    () => true,
    () => false,
  );
  if (!present) return;
  const python = await localPython(folder);
  if (!python) {
    throw new CliError(
      'failure',
      'requirements.txt names packages, and there is no Python here to install them with.',
      'Install python3 and its pip.',
    );
  }
  const version = runtime.replace('PYTHON_', '').replace('_', '.');
  const other =
    version === python.version ? [] : ['--python-version', version, '--only-binary=:all:', '--implementation', 'cp'];
  await runTool(
    python.command,
    [
      '-m',
      'pip',
      'install',
      '--quiet',
      '--disable-pip-version-check',
      '--no-compile',
      '--target',
      stage,
      ...other,
      '-r',
      requirements,
    ],
    { cwd: folder, signal, env: { PIP_NO_INPUT: '1' } },
  );
}
