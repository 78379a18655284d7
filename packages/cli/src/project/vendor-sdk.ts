import { copyFile, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CliError } from '../cli-error.ts';
import { runTool } from '../package/run-tool.ts';
import { sdkFile } from './create-project.ts';

/** Packs the SDK into the project. So the project is complete and needs no registry for the SDK. */
export async function vendorSdk(folder: string, signal: AbortSignal): Promise<void> {
  const temporary = await mkdtemp(join(tmpdir(), 'agentcore-sdk-'));
  try {
    const built = await builtSdk(join(temporary, 'package'), signal);
    await runTool('npm', ['pack', '--silent', '--pack-destination', temporary, built], { signal });
    const packed = (await readdir(temporary)).find((name) => name.endsWith('.tgz'));
    if (!packed) throw new CliError('failure', 'npm packed the SDK and left no file.');
    const target = join(folder, sdkFile);
    await mkdir(dirname(target), { recursive: true });
    await copyFile(join(temporary, packed), target);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** The folder of the SDK as it is published: the one that came with an installed `agentcore`, or built into `folder` from a clone's source. */
async function builtSdk(folder: string, signal: AbortSignal): Promise<string> {
  const entry = fileURLToPath(import.meta.resolve('agentplatform'));
  if (!entry.endsWith('.ts')) return dirname(entry);
  await runTool(process.execPath, [join(dirname(entry), '../scripts/build.mjs'), folder], { signal });
  return folder;
}

/**
 * Installs the dependencies of a new project. The only one is the vendored SDK. So this needs no registry and no network.
 */
export async function installPackages(folder: string, signal: AbortSignal): Promise<void> {
  await runTool('npm', ['install', '--offline', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    signal,
  });
}
