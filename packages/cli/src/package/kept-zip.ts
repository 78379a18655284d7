import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type PackedFile, writeZip } from './write-zip.ts';

/** A zip of a folder, stored beside the folder, and a description of its content. */
export interface KeptZip {
  zip: string;
  files: PackedFile[];
}

const ZIP = 'packed.zip';
const LIST = 'files.json';

/** The zip of all files below a folder, stored as `FOLDER.packed`. It is made on the first call. Code that changes the folder must remove it. */
export async function keptZip(folder: string, signal: AbortSignal): Promise<KeptZip> {
  const kept = `${folder}.packed`;
  const known = await readList(kept);
  if (known) return { zip: join(kept, ZIP), files: known };
  const draft = `${kept}.${process.pid}`;
  await mkdir(draft, { recursive: true });
  try {
    const files = await writeZip([folder], join(draft, ZIP), signal);
    await writeFile(join(draft, LIST), JSON.stringify(files));
    await rm(kept, { recursive: true, force: true });
    await rename(draft, kept);
    return { zip: join(kept, ZIP), files };
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

async function readList(kept: string): Promise<PackedFile[] | undefined> {
  try {
    return JSON.parse(await readFile(join(kept, LIST), 'utf8'));
  } catch {
    return undefined;
  }
}
