import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CliError } from '../cli-error.ts';
import { stateFolder } from '../project/state-folder.ts';
import { localPython } from './python.ts';
import { readRequirements } from './requirements.ts';
import { runTool } from './run-tool.ts';

export interface InstallOptions {
  /** Whose `requirements.txt` is meant. */
  folder: string;
  /** The Python that will run them, such as `3.12`. */
  version: string;
  signal: AbortSignal;
  /** Gets how far pip is. */
  say(text: string): void;
}

/**
 * Resolves with a folder that contains the packages of `requirements.txt` for one version of Python; undefined if it names none. The folder stays below `.agentcore`. pip runs
 * again only if the requirements have changed, or a file of this machine that they name. Rejects with a `CliError` if pip fails or is missing.
 */
export async function pythonPackages({ folder, version, signal, say }: InstallOptions): Promise<string | undefined> {
  const requirements = await readRequirements(join(folder, 'requirements.txt'));
  if (!requirements) return undefined;
  const python = await localPython(folder);
  if (!python) {
    throw new CliError(
      'failure',
      'requirements.txt names packages, but there is no Python here to install them.',
      'Install python3 and its pip.',
    );
  }
  const kept = join(await stateFolder(folder), 'packages');
  const key = JSON.stringify([requirements.texts, python.version, process.platform, process.arch]);
  const name = `${version}-${createHash('sha256').update(key).digest('hex').slice(0, 16)}`;
  const target = join(kept, name);

  if (!requirements.moving && existsSync(target)) return target;
  const draft = `${target}.${process.pid}`;
  await mkdir(draft, { recursive: true });
  say('pip installs what requirements.txt names; it is kept for the next deploy');
  try {
    // Where another Python version is on this machine, only ready-made wheels can be used.
    const other =
      version === python.version ? [] : ['--python-version', version, '--only-binary=:all:', '--implementation', 'cp'];
    const options = ['--disable-pip-version-check', '--no-compile', '--progress-bar', 'off', '--target', draft];
    await runTool(python.command, ['-m', 'pip', 'install', ...options, ...other, '-r', 'requirements.txt'], {
      ...{ cwd: folder, signal, onLine: countPackages(say) },
      env: { PIP_NO_INPUT: '1' },
    });
    await forget(kept, version);
    await rename(draft, target);
    return target;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Passes on what pip says, with the number of packages that it has met so far. */
function countPackages(say: (text: string) => void): (line: string) => void {
  const met = new Set<string>();
  return (line) => {
    const name = /^Collecting ([\w.-]+)/.exec(line)?.[1];
    if (name) met.add(name);
    const many = `${met.size} ${met.size === 1 ? 'package' : 'packages'}`;
    if (line.startsWith('Installing collected packages')) say(`pip unpacks ${many}`);
    else say(`pip, ${many} so far: ${line}`);
  };
}

/** What earlier requirements asked for takes hundreds of megabytes, and so does its zip (`keptZip`). */
async function forget(kept: string, version: string): Promise<void> {
  const made = await readdir(kept);
  const old = made.filter((name) => name.startsWith(`${version}-`) && /-[0-9a-f]{16}(\.packed)?$/.test(name));
  await Promise.all(old.map((name) => rm(join(kept, name), { recursive: true, force: true })));
}
