import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { identify, type ProcessIdentity, type RunCommand } from '../../processes/index.ts';
import { inControlGroup } from '../exec/process-group.ts';
import type { StagedSpec } from '../host-stage.ts';
import { type ImageUser, resolveImageUser } from '../oci/image-user.ts';
import { commandOf, ociProcess } from '../oci/oci-spec.ts';
import { property } from '../records/json-path.ts';
import { SandboxError } from '../sandbox.ts';
import { containerBody } from './container-body.ts';
import { cgroupOf, type DockerEngine } from './docker-engine.ts';
import { DATA_LABEL, type DockerRecord, INSTANCE_LABEL, recordLabels } from './docker-record.ts';
import { mountRoot, type RootEntries, rootPlaces } from './docker-root.ts';
import { forgetSecretFile, READER, writeSecretFile } from './secret-file.ts';
import { ensureSkeleton } from './skeleton-image.ts';

export interface DockerStartOptions {
  engine: DockerEngine;
  spec: StagedSpec;
  /** Its network, whose rules are in force. */
  slot: number;
  /** The sandbox's own directory, which exists. */
  dir: string;
  disk: 'loop' | 'tmpfs';
  runtime: string | undefined;
  logBytes: number;
  run: RunCommand;
  signal: AbortSignal | undefined;
}

export interface DockerStarted {
  record: DockerRecord;
  container: string;
  init: ProcessIdentity | undefined;
}

/** Makes files and container and starts it. Rejects with SandboxError, DockerError or the signal's reason, and leaves the cleaning to the caller. */
export async function startContainer(options: DockerStartOptions): Promise<DockerStarted> {
  const { engine, spec } = options;
  try {
    return await start(options);
  } finally {
    if (spec.secretEnv) await forgetSecretFile(engine.instance.secrets, spec.id);
  }
}

async function start(options: DockerStartOptions): Promise<DockerStarted> {
  const { engine, spec, slot, dir, signal } = options;
  const { api, instance, networks } = engine;
  const user = await unprivileged(spec);
  const { ip } = networks.address(slot);
  const hostname = spec.id.replace(/^-+|-+$/g, '') || 'sandbox';
  const texts = engine.firewall.files(hostname, ip, spec.network);
  const files = await writeFiles(texts, dir);
  const entries = await prepareRoot(options, user, texts);
  const { root } = rootPlaces(instance, spec.id);
  const record: DockerRecord = {
    id: spec.id,
    labels: spec.labels,
    isolation: engine.isolation,
    slot,
    ip,
    user: `${user.uid}:${user.gid}`,
    cwd: spec.image.config.workingDir || '/',
    network: spec.network,
  };
  const secrets = spec.secretEnv && (await writeSecretFile(instance.secrets, spec.id, spec.secretEnv, user));
  const made = await api.json('POST', '/containers/create', {
    query: { name: `${instance.prefix}-${spec.id}` },
    signal,
    body: containerBody({
      spec,
      user,
      skeleton: await ensureSkeleton(api, root, entries),
      root,
      entries,
      files,
      secrets,
      hostname,
      runtime: options.runtime,
      cgroupParent: cgroupOf(engine, spec.id).parent,
      networkName: networks.name(slot),
      ip,
      nameserver: engine.firewall.subnet.gateway,
      logBytes: options.logBytes,
      swapLimit: engine.swapLimit,
      labels: { [INSTANCE_LABEL]: instance.prefix, [DATA_LABEL]: instance.dataDir, ...recordLabels(record) },
    }),
  });
  const container = String(property(made, 'Id'));
  signal?.throwIfAborted();
  await api.json('POST', `/containers/${container}/start`);
  signal?.throwIfAborted();
  const state = property(await api.json('GET', `/containers/${container}/json`), 'State');
  const pid = Number(property(state, 'Pid'));
  const init = pid > 1 ? await identify(pid) : undefined;
  // One that ended at once has none any more; one that is seen elsewhere is not on this host.
  // A number that the daemon gives means this process only when both see the same processes.
  if (init && !(await inControlGroup(pid, container)) && (await identify(pid)))
    throw new SandboxError('refused', 'The Docker daemon runs its containers somewhere else than on this host.');
  return { record, container, init };
}

/** Root inside would be root outside: the daemon has one user namespace for all at most. */
async function unprivileged(spec: StagedSpec): Promise<ImageUser> {
  const user = await resolveImageUser(spec.image.rootfs, spec.image.config.user);
  if (user.uid !== 0) return user;
  throw new SandboxError(
    'refused',
    'The image runs as root, which the provider "docker" cannot hold apart from the host\'s root. Set USER to another id, or none, or use the provider "oci".',
  );
}

/** As files of the host to be mounted: the engine has its own idea of what they hold, unless they are mounts. */
function writeFiles(files: { path: string; text: string }[], dir: string): Promise<{ path: string; source: string }[]> {
  return Promise.all(
    files.map(async ({ path, text }) => {
      const source = join(dir, path.replaceAll('/', '_'));
      await writeFile(source, text, { mode: 0o644 });
      return { path, source };
    }),
  );
}

async function prepareRoot(
  { engine, spec, dir, disk, run }: DockerStartOptions,
  user: ImageUser,
  files: { path: string; text: string }[],
): Promise<RootEntries> {
  const workingDir = spec.image.config.workingDir || '/';
  const mountTargets = await Promise.all(
    spec.mounts.map(async ({ source, target }) => ({
      kind: (await stat(source)).isDirectory() ? ('dir' as const) : ('file' as const),
      path: target,
    })),
  );
  const request = {
    dir,
    image: spec.image.rootfs,
    diskBytes: spec.limits.diskBytes,
    diskTemplate: disk === 'loop' ? join(engine.instance.run, `disk-${spec.limits.diskBytes}.ext4`) : undefined,
    mapRoot: false,
    uid: user.uid,
    gid: user.gid,
    workingDir,
    ownWorkingDir: user.isDefault && workingDir !== '/',
    // Given here too, for files that replace a link of the image: the engine would mount over the target of the link.
    files,
    mountTargets,
    command: spec.secretEnv ? { file: READER, path: [] } : commandOf(ociProcess(spec, user)),
  };
  return mountRoot(engine.instance, spec.id, request, run);
}
