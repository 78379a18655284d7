import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Connection } from '../platform/connection.ts';
import type { Project } from '../project/project.ts';
import { fetchBase } from './base-image.ts';
import { copiedEntries, makeFolders, USUAL_FOLDERS } from './copy-files.ts';
import { readIgnoreFile } from './ignore-file.ts';
import { type BaseImage, configDocument, type Layer, manifestDocument, type RunSettings } from './image-document.ts';
import { readInstructions } from './instructions.ts';
import { writeLayerFile } from './layer-file.ts';
import { checkInstructions, type ImagePlan, planImage, readFrom } from './plan-image.ts';
import { RepositoryPush } from './push.ts';

/** An image that the platform's registry has. */
export interface PackagedImage {
  /** `platform/<name>@sha256:…` */
  containerUri: string;
  /** What the user should know of it. */
  note: string | undefined;
}

/** Layers on this machine's disk, and what the image says of itself. */
export interface AssembledImage {
  layers: (Layer & { path: string })[];
  settings: RunSettings;
}

/**
 * Makes the project's image without a builder, from a Containerfile that executes nothing: each COPY becomes a layer on the base.
 * The same files on the same base give the same digest on every machine; what the registry has is not sent again. Resolves with
 * its name, `platform/<name>@sha256:…`; rejects with a `CliError` that names the line.
 */
export async function assembleImage(
  project: Project,
  connection: Connection,
  say: (text: string) => void,
  signal: AbortSignal,
): Promise<PackagedImage> {
  const file = project.file.containerfile ?? 'Containerfile';
  const instructions = readInstructions(await readFile(join(project.folder, file), 'utf8'));
  checkInstructions(instructions);
  const { from, rest } = readFrom(instructions);
  const repository = project.file.name.toLowerCase();
  const { base, standIn } = await fetchBase(from, repository, connection, signal);
  const plan = planImage(rest, base.settings, from.globals, usersOf(from.image));
  const work = await mkdtemp(join(tmpdir(), 'agentcore-layers-'));
  try {
    const image = await assembleLayers(plan, base, { folder: project.folder, containerfile: file }, work, signal);
    const push = await RepositoryPush.open(connection, repository, signal);
    let sent = 0;
    for (const layer of image.layers) if (await push.file(layer, layer.path)) sent += 1;
    const config = await push.bytes(configDocument(base, image.settings, image.layers));
    const digest = await push.manifest(manifestDocument(config, [...base.layers, ...image.layers]), 'latest');
    say(`${image.layers.length} layers on ${base.name}, ${sent} of them new`);
    return { containerUri: `platform/${repository}@${digest}`, note: standIn };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Writes the layers of a plan into the folder `work`. Rejects with a `CliError` that names the line. */
export async function assembleLayers(
  plan: ImagePlan,
  base: Pick<BaseImage, 'settings'>,
  from: { folder: string; containerfile: string },
  work: string,
  signal: AbortSignal,
): Promise<AssembledImage> {
  const context = {
    folder: await realpath(from.folder),
    ignored: await readIgnoreFile(from.folder, from.containerfile),
  };
  const folders = new Set(USUAL_FOLDERS);
  makeFolders(folders, base.settings.WorkingDir || '/');
  const layers: AssembledImage['layers'] = [];
  for (const step of plan.steps) {
    signal.throwIfAborted();
    if (step.kind === 'folder') makeFolders(folders, step.path);
    else {
      const entries = await copiedEntries(step, context, folders);
      if (entries.length === 0) continue;
      const path = join(work, `${layers.length}.tar`);
      layers.push({ ...(await writeLayerFile(path, entries, signal)), path });
    }
  }
  return { layers, settings: plan.settings };
}

// Names need the image's own list of users. Root is the same in all, and images of Node have one called node.
function usersOf(image: string): Record<string, number> {
  return /(^|\/)node:/.test(image) ? { root: 0, node: 1000 } : { root: 0 };
}
