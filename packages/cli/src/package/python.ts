import { join } from 'node:path';
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

/** `PYTHON_3_12` -> `3.12` */
export function versionOf(runtime: string): string {
  return runtime.replace('PYTHON_', '').replace('_', '.');
}
