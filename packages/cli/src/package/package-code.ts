import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CliError } from '../cli-error.ts';
import type { Project } from '../project/project.ts';
import { copyPackages } from './copy-packages.ts';
import { type StagedCode, type StageOptions, stageCode } from './stage-code.ts';
import { type WrittenZip, writeZip } from './write-zip.ts';

export interface CodePackage extends StagedCode, WrittenZip, AsyncDisposable {
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
    const written = await writeZip([stage, ...(staged.packages ? [staged.packages] : [])], zip, options.signal);
    const zipBytes = (await stat(zip)).size;
    if (zipBytes > limits.zip || written.unpackedBytes > limits.unpacked) {
      throw new CliError(
        'usage',
        `The agent is too large: ${megabytes(zipBytes)} zipped and ${megabytes(written.unpackedBytes)} unpacked; allowed are 250 MB and 750 MB.`,
        'Leave files out with "exclude" in agentcore.json, or deploy an image with language containerfile.',
      );
    }
    return { ...staged, ...written, zip, zipBytes, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** `1.4 MB`, `12 kB`. */
export function megabytes(bytes: number): string {
  return bytes < mebibyte ? `${Math.ceil(bytes / 1024)} kB` : `${(bytes / mebibyte).toFixed(1)} MB`;
}
