import { stat } from 'node:fs/promises';
import { orMissing } from '../../system-error.ts';
import type { Platform } from '../architecture.ts';
import type { Bases } from '../bases/bases.ts';
import type { KeyedLayers } from '../formats/keyed-layers.ts';
import { AGENT, type LayerEntry, layerBytes, writeLayer } from '../formats/layer.ts';
import { packedHash } from '../formats/packed-hash.ts';
import { readZip, type ZipItem } from '../formats/zip.ts';
import { type CodeInput, ImageError, type ResolvedImage } from '../images.ts';
import type { Descriptor } from '../manifest.ts';
import type { ImageStore } from '../store/image-store.ts';
import type { ImageUsage } from '../store/usage.ts';
import { codeCommand, codeRuntime } from './code-command.ts';
import { type CodeParts, partsOf } from './installed-packages.ts';
import { checkNativeModules } from './native-modules.ts';
import { checkPythonAbi } from './python-abi.ts';
import { writeImage } from './write-image.ts';

export const CODE_DIR = '/var/task';
const TASK = CODE_DIR.slice(1);

export interface CodeImageDeps {
  store: ImageStore;
  bases: Bases;
  /** Where the layers of packages are known by their zips. */
  layers: KeyedLayers;
  machine: Platform;
  usage: Pick<ImageUsage, 'during'>;
}

/**
 * Makes an image of a zip of code: the base of its runtime, a layer with the packages that were installed into it, if any, and one with the rest, at
 * /var/task owned by uid 10001, and the command that `entryPoint` stands for. The same files on the same base give the same digest. Throws `ImageError`.
 */
export async function codeImage(deps: CodeImageDeps, input: CodeInput): Promise<ResolvedImage> {
  const { store } = deps;
  if (!(await orMissing(stat(input.zip)))) throw new ImageError('not-found', 'The zip of the code is not there.');
  const runtime = codeRuntime(input.runtime);
  using zip = await readZip(input.zip, store.limits);
  const { items } = zip;
  const command = input.entryPoint ? codeCommand(runtime, input.entryPoint, items) : [runtime.interpreter];
  await checkNativeModules(items, deps.machine);
  const minor = /^PYTHON_3_(\d+)$/.exec(runtime.name)?.[1];
  if (minor !== undefined) checkPythonAbi(items, Number(minor));

  const base = await store.readImage((await deps.bases.ensure(runtime.base, input.signal)).digest);
  const parts = await partsOf(items, minor === undefined ? 'node' : 'python');
  const most =
    layerBytes(entriesOf(parts.own)) + (parts.packages.length > 0 ? layerBytes(entriesOf(parts.packages)) : 0);
  return await deps.usage.during(input.accountId, most, async () => {
    const made = await writeLayers(deps, parts, input);
    const digest = await writeImage(store, {
      platform: base.config.platform,
      layers: [...base.manifest.layers, ...made],
      run: {
        entrypoint: command,
        cmd: [],
        env: withEnv(base.config.run.env, runtime.env),
        workingDir: CODE_DIR,
        user: `${AGENT.uid}:${AGENT.gid}`,
      },
    });
    await noteMade(store, input.accountId, digest, made);
    return store.describe('The image of the code', digest, deps.machine);
  });
}

/** Packages seldom change from one version to the next: an account's are written once for each way in which they are packed. */
async function writeLayers(
  { store, layers }: CodeImageDeps,
  { packages, own }: CodeParts,
  { zip, accountId, signal }: CodeInput,
): Promise<Descriptor[]> {
  const rest = await writeLayer(store.blobs, entriesOf(own), signal);
  if (packages.length === 0) return [rest];
  const key = `packages of ${accountId ?? ''}: ${await packedHash(zip, packages)}`;
  return [await layers.make(key, () => entriesOf(packages), signal), rest];
}

/** Notes whose what was written is; the layers of the base are nobody's. */
async function noteMade(
  store: ImageStore,
  account: string | undefined,
  digest: string,
  layers: readonly Descriptor[],
): Promise<void> {
  if (account === undefined) return;
  const { config } = (await store.readImage(digest)).manifest;
  for (const made of [digest, config.digest, ...layers.map((layer) => layer.digest)])
    await store.repositories.linkMade(account, made);
}

function entriesOf(items: readonly ZipItem[]): LayerEntry[] {
  return [{ type: 'directory', path: TASK, mode: 0o755, ...AGENT }, ...items.map(toEntry)];
}

function toEntry(item: ZipItem): LayerEntry {
  const path = `${TASK}/${item.path}`;
  if (item.type === 'directory') return { type: 'directory', path, mode: 0o755, ...AGENT };
  if (item.type === 'symlink') return { type: 'symlink', path, target: item.target, ...AGENT };
  return { type: 'file', path, mode: item.executable ? 0o755 : 0o644, size: item.size, open: item.open, ...AGENT };
}

function withEnv(base: readonly string[], own: Readonly<Record<string, string>>): string[] {
  const all = new Map(
    base.map((line): [string, string] => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
  for (const [name, value] of Object.entries(own)) all.set(name, value);
  return [...all].map(([name, value]) => `${name}=${value}`);
}
