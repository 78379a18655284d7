import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { cp, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { CliError } from '../cli-error.ts';
import { defaultPythonRuntime, versionOf } from './python.ts';
import { contentOf, writeZip } from './write-zip.ts';

/** The zip of a function's code. */
export interface FunctionPackage extends AsyncDisposable {
  zip: string;
  sha256: string;
  /** The runtime and handler that the files suggest; undefined if they suggest none. */
  guess: { runtime: string; handler: string } | undefined;
}

/**
 * A zip as it is, or one of a folder in a temporary file that is gone once the result is disposed of: all files but dot files, where secrets tend to be.
 * Rejects with a `CliError` (usage) where there is neither.
 */
export async function packageFunction(cwd: string, path: string, signal: AbortSignal): Promise<FunctionPackage> {
  const source = resolve(cwd, path);
  const found = await stat(source).catch(() => undefined);
  if (found?.isFile() && source.endsWith('.zip')) {
    const hash = createHash('sha256');
    for await (const chunk of createReadStream(source, { signal })) hash.update(chunk);
    const nothing = async (): Promise<void> => undefined;
    return { zip: source, sha256: hash.digest('hex'), guess: undefined, [Symbol.asyncDispose]: nothing };
  }
  if (!found?.isDirectory())
    throw new CliError(
      'usage',
      `${path} is neither a folder nor a zip.`,
      'Name the code of the function: --path FOLDER',
    );
  const folder = await mkdtemp(join(tmpdir(), 'agentcore-'));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const stage = join(folder, 'stage');
    const filter = (file: string): boolean => file === source || !basename(file).startsWith('.');
    await cp(source, stage, { recursive: true, dereference: true, filter });
    const zip = join(folder, 'code.zip');
    const { sha256, files } = contentOf(await writeZip([stage], zip, signal));
    if (files === 0) throw new CliError('usage', `${path} contains no files.`);
    return { zip, sha256, guess: await guess(source), [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** By the files that functions begin with by custom. */
async function guess(folder: string): Promise<FunctionPackage['guess']> {
  const files = await readdir(folder);
  if (files.some((file) => /^index\.[mc]?js$/.test(file))) return { runtime: 'nodejs24.x', handler: 'index.handler' };
  if (!files.includes('lambda_function.py')) return undefined;
  const runtime = `python${versionOf(await defaultPythonRuntime(folder))}`;
  return { runtime, handler: 'lambda_function.lambda_handler' };
}
