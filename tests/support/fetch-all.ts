import { globSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { NodeBinaries } from '../../packages/platform/src/kernel/images/bases/node-binaries.ts';
import { npmTree } from '../../packages/platform/src/kernel/kept-tree.ts';
import { postgresBinaries } from '../../packages/platform/src/kernel/storage/testing/postgres-binaries.ts';
import { PackageTrees } from '../../packages/platform/src/services/code-interpreter/package-trees.ts';
import { withProgress } from '../../scripts/bootstrap/progress.mjs';
import { FETCHED, PLATFORM_CACHE, unfinished } from '../../scripts/test/fetched-once.ts';
import { pythonPackages } from '../../scripts/test/python-packages.ts';
import { embeddingModel } from './embedding-model.ts';
import { EXPRESS, MCP_CONFORMANCE, MCP_SDK, npmPackage, VENDOR_SDK } from './npm-package.ts';
import { publicDocuments } from './public-documents.ts';
import { vendorPython } from './vendor-python.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const REQUIREMENTS = 'tests/{python-*.txt,support/*/requirements.txt}';

/**
 * Fetches what many tests stand on before the first of them runs: a registry that is slow or away then holds up this alone, and what a
 * machine once had it needs no registry for. What cannot be had is said here and again by its tests, which say what is missing. This is what tests
 * without a platform stand on.
 */
export async function fetchFirst(): Promise<void> {
  await mkdir(FETCHED, { recursive: true });
  await unfinished.sweep();
  await Promise.allSettled([pythonPackages(ROOT), postgresBinaries()]);
}

/** The same of what tests with a platform stand on, beside those without. */
export async function fetchOthers(): Promise<void> {
  const requirements = globSync(REQUIREMENTS, { cwd: ROOT });
  await Promise.allSettled([
    ...requirements.map((file) => pythonPackages(ROOT, join(ROOT, file))),
    ...[VENDOR_SDK, MCP_SDK, MCP_CONFORMANCE, EXPRESS].map(npmPackage),
    vendorPython(),
    publicDocuments(),
    embeddingModel(),
    withProgress('Fetching Node 22', () => new NodeBinaries(join(PLATFORM_CACHE, 'programs'), unfinished).get('22')),
    withProgress('Fetching packages of the code interpreter', interpreterPackages),
    withProgress('Fetching packages of harnesses', harnessPackages),
  ]);
}

/** What the loop of harnesses stands on. */
async function harnessPackages(): Promise<void> {
  const named = { name: 'npm', sourceDir: join(ROOT, 'images/harness/npm'), what: 'The image of harness sessions' };
  const making = { signal: AbortSignal.timeout(600_000), step: () => undefined };
  await npmTree(join(PLATFORM_CACHE, 'harness'), named, making);
}

/** What the code interpreters under test bring. */
async function interpreterPackages(): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const trees = new PackageTrees({
    cacheDir: join(PLATFORM_CACHE, 'code-interpreter'),
    sourceDir: join(ROOT, 'images/code-interpreter'),
  });
  const making = { signal: AbortSignal.timeout(600_000), step: () => undefined };
  const version = await trees.machinePython();
  const python = async (): Promise<void> => {
    if (!version) return;
    await trees.python('slim', version, making);
    // Several files stand on it: each would install it for itself.
    await trees.python('full', version, making);
  };
  await Promise.all([python(), trees.npm(making)]);
}
