import { mkdir, readdir, readFile, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunCommand } from '../../processes/index.ts';
import { unescapeMount } from '../host/cgroups.ts';
import type { Instance } from '../host/instance.ts';
import { type MountRequest, makeRoot } from '../owner/owner.ts';
import { SandboxError } from '../sandbox.ts';

/** Made by the engine itself in every container. */
const ENGINES_OWN = new Set(['proc', 'sys', 'dev']);

/** The entries of the top directory of a root file system. */
export interface RootEntries {
  directories: string[];
  files: string[];
  links: string[];
}

/** Mount points of a sandbox's disk and of its root file system, on the host where the daemon finds them. */
export function rootPlaces(instance: Instance, id: string): { disk: string; root: string } {
  const base = join(instance.run, 'docker', id);
  return { disk: join(base, 'disk'), root: join(base, 'root') };
}

/**
 * A bounded disk of the sandbox's own over the unpacked image, the same as with an OCI runtime. The engine's own storage drivers cannot
 * bound what is written on most file systems; so containers get this one, bound in piece by piece. Rejects with SandboxError `failed`.
 */
export async function mountRoot(
  instance: Instance,
  id: string,
  request: Omit<MountRequest, 'diskMount' | 'rootMount'>,
  run: RunCommand,
): Promise<RootEntries> {
  const { disk, root } = rootPlaces(instance, id);
  // Passed through, not read, by the container's processes.
  await mkdir(join(instance.run, 'docker'), { recursive: true, mode: 0o711 });
  await mkdir(disk, { recursive: true, mode: 0o711 });
  await mkdir(root, { recursive: true, mode: 0o755 });
  await makeRoot({ ...request, diskMount: disk, rootMount: root }, run);
  const entries: RootEntries = { directories: [], files: [], links: [] };
  for (const entry of await readdir(root, { withFileTypes: true })) {
    if (ENGINES_OWN.has(entry.name)) continue;
    if (entry.isDirectory()) entries.directories.push(entry.name);
    else if (entry.isFile()) entries.files.push(entry.name);
    else if (entry.isSymbolicLink()) entries.links.push(entry.name);
  }
  return entries;
}

/** Unmounts and removes them; what is gone already is no error. Rejects when something is still in use. */
export async function unmountRoot(instance: Instance, id: string, run: RunCommand): Promise<void> {
  const { disk, root } = rootPlaces(instance, id);
  for (const place of [root, disk]) {
    // More than one where a server was killed in between.
    for (let tries = 0; (await mountPoints()).has(place); tries++) {
      const { code, stderr } = await run(['umount', place]);
      if (code !== 0 && tries >= 100)
        throw new SandboxError('failed', `${place} cannot be unmounted: ${stderr.trim()}`);
      if (code !== 0) await sleep(20);
    }
    await rmdir(place).catch(() => undefined);
  }
  await rm(join(instance.run, 'docker', id), { recursive: true, force: true });
}

/** Ids that have a directory for their mounts. */
export function listRoots(instance: Instance): Promise<string[]> {
  return readdir(join(instance.run, 'docker')).catch(() => []);
}

async function mountPoints(): Promise<Set<string>> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
  return new Set(lines.map((line) => unescapeMount(line.split(' ')[4] ?? '')));
}
