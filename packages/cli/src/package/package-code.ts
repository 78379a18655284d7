import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CliError } from '../cli-error.ts';
import type { Project } from '../project/project.ts';
import { appendZip } from './append-zip.ts';
import { copyPackages } from './copy-packages.ts';
import { keptZip } from './kept-zip.ts';
import { type StagedCode, type StageOptions, stageCode } from './stage-code.ts';
import { contentOf, type PackedFile, writeZip, type ZipContent } from './write-zip.ts';

export interface CodePackage extends StagedCode, ZipContent, AsyncDisposable {
  zip: string;
  zipBytes: number;
}

const mebibyte = 1024 * 1024;
const limits = { zip: 250 * mebibyte, unpacked: 750 * mebibyte };

/** Makes the zip of a TypeScript, JavaScript or Python agent in a temporary folder that is gone once the result is disposed of. */
export async function packageCode(project: Project, options: StageOptions): Promise<CodePackage> {
  const folder = await mkdtemp(join(tmpdir(), 'agentcore-'));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const stage = join(folder, 'stage');
    await mkdir(stage);
    const staged = await stageCode(project, stage, options);
    await copyPackages(project.folder, staged.external, stage);
    const zip = join(folder, 'code.zip');
    options.say?.('packs the files');
    const content = contentOf(
      staged.packages
        ? await zipWithPackages(stage, staged.packages, zip, options.signal)
        : await writeZip([stage], zip, options.signal),
    );
    const zipBytes = (await stat(zip)).size;
    if (zipBytes > limits.zip || content.unpackedBytes > limits.unpacked) {
      throw new CliError(
        'usage',
        `The agent is too large: ${megabytes(zipBytes)} zipped and ${megabytes(content.unpackedBytes)} unpacked. At most 250 MB and 750 MB are allowed.`,
        'Leave files out with "exclude" in agentcore.json, or deploy an image with language containerfile.',
      );
    }
    return { ...staged, ...content, zip, zipBytes, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** The packages are thousands of files that seldom change: they come as they were packed before, unless a file of the agent takes the place of one. */
async function zipWithPackages(
  stage: string,
  packages: string,
  zip: string,
  signal: AbortSignal,
): Promise<PackedFile[]> {
  const kept = await keptZip(packages, signal);
  const ownZip = `${zip}.own`;
  const own = await writeZip([stage], ownZip, signal);
  const taken = new Set(kept.files.map(({ name }) => name));
  const whole = own.some(({ name }) => taken.has(name)) || !(await appendZip(kept.zip, ownZip, zip, signal));
  return whole ? writeZip([stage, packages], zip, signal) : [...kept.files, ...own];
}

/** `1.4 MB`, `12 kB`. */
export function megabytes(bytes: number): string {
  return bytes < mebibyte ? `${Math.ceil(bytes / 1024)} kB` : `${(bytes / mebibyte).toFixed(1)} MB`;
}
