import { copyFile, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CliError } from '../cli-error.ts';
import { runTool } from '../package/run-tool.ts';
import { sdkFile } from './create-project.ts';

/** Builds the SDK's package and puts it into the project, so that the project stands by itself and needs no registry for it. */
export async function vendorSdk(folder: string, signal: AbortSignal): Promise<void> {
  const sdk = join(dirname(fileURLToPath(import.meta.resolve('agentplatform'))), '..');
  const temporary = await mkdtemp(join(tmpdir(), 'agentcore-sdk-'));
  try {
    const built = join(temporary, 'package');
    await runTool(process.execPath, [join(sdk, 'scripts/build.mjs'), built], { signal });
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

/**
 * Installs what a new project's package.json asks for. That is the vendored SDK and nothing else, so no registry is asked:
 * it works without a network, and a slow registry does not hold it up.
 */
export async function installPackages(folder: string, signal: AbortSignal): Promise<void> {
  await runTool('npm', ['install', '--offline', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    signal,
  });
}
