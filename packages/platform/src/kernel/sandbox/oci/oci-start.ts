import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { identify, type ProcessIdentity } from '../../processes/index.ts';
import { leaseFile } from '../host/lease-file.ts';
import type { StagedSpec } from '../host-stage.ts';
import type { Owner } from '../owner/owner.ts';
import { limited } from '../process/host-process.ts';
import { type SandboxRecord, writeRecord } from '../records/sandbox-record.ts';
import type { ImageUser } from './image-user.ts';
import type { Engine } from './oci-engine.ts';
import { commandOf, mergeEnv, type OciConfig, type OciProcess, ociConfig, ociProcess } from './oci-spec.ts';
import type { RuntimeInfo } from './runtime-cli.ts';
import { withInit } from './sandbox-init.ts';
import { seccompProfile } from './seccomp.ts';
import type { SnapshotFiles } from './snapshots.ts';

export interface StartOptions {
  engine: Engine;
  spec: StagedSpec;
  owner: Owner;
  user: ImageUser;
  /** The sandbox's own directory, which exists. */
  dir: string;
  disk: 'loop' | 'tmpfs';
  logBytes: number;
  /** What it goes on from; undefined for one that begins anew. */
  snapshot?: SnapshotFiles | undefined;
  signal: AbortSignal | undefined;
}

export interface Started {
  record: SandboxRecord;
  process: OciProcess;
  init: ProcessIdentity | undefined;
}

/**
 * Starts a sandbox in the namespaces of `owner`. Files, mounts and network rules are made side by side; the first process starts
 * when all of them are in place. Rejects with SandboxError or with the signal's reason, and leaves the cleaning to the caller.
 */
export async function startSandbox({
  engine,
  spec,
  owner,
  user,
  dir,
  disk,
  logBytes,
  snapshot,
  signal,
}: StartOptions): Promise<Started> {
  const { instance, network, runtime } = engine;
  const { joinsUserNamespace } = engine.traits;
  const { ip, hostInterface } = owner.address;
  const hostname = spec.id.replace(/^-+|-+$/g, '') || 'sandbox';
  // Owners as in the image and on the host, though the sandbox's ids are its own; what is propagated, whoever mounts it sees to.
  const mapped = spec.mounts.map((mount) => owner.ids.own && joinsUserNamespace && !mount.propagate);
  const config = ociConfig({
    spec: {
      ...spec,
      mounts: spec.mounts.map((mount, at) =>
        mapped[at] ? { ...mount, source: join(instance.placesMount, String(at)) } : mount,
      ),
    },
    user,
    hostname,
    cgroupsPath: `${instance.cgroupParent}/${spec.id}`,
    rootPath: instance.rootMount,
    userNamespace: joinsUserNamespace ? owner.userNamespace : undefined,
    networkNamespace: owner.networkNamespace,
    ids: owner.ids,
    repeatMappings: joinsWithMappings(engine.info),
    seccomp: seccompProfile(process.arch, spec),
    swapLimit: engine.swapLimit,
    own: { threads: engine.traits.ownThreads(spec.limits.pids), memoryBytes: engine.traits.ownMemoryBytes },
  });
  const record: SandboxRecord = {
    id: spec.id,
    labels: spec.labels,
    isolation: engine.isolation,
    owner: owner.identity,
    slot: owner.slot,
    ip,
    hostInterface,
    network: spec.network,
    firstId: owner.ids.first,
    openFiles: joinsUserNamespace ? spec.limits.openFiles : undefined,
  };
  // The record comes first, so that a later server finds everything made after it.
  await writeRecord(dir, record);
  const workingDir = spec.image.config.workingDir || '/';
  const mountTargets = await Promise.all(
    // The init last: the others are numbered.
    withInit(spec).map(async ({ source, target }, at) => ({
      kind: await kindOf(source),
      path: target,
      ...(mapped[at] ? { source } : {}),
    })),
  );
  await Promise.all([
    ...spec.mounts.map((mount) => joinsUserNamespace && mount.onUserNamespace?.(owner.userNamespace)),
    writeFile(join(dir, 'config.json'), JSON.stringify(config), { mode: 0o600 }),
    network.open(hostInterface, spec.network),
    owner.mount({
      dir,
      image: spec.image.rootfs,
      diskMount: instance.diskMount,
      rootMount: instance.rootMount,
      diskBytes: spec.limits.diskBytes,
      diskTemplate: snapshot
        ? snapshot.disk
        : disk === 'loop'
          ? join(instance.run, `disk-${spec.limits.diskBytes}.ext4`)
          : undefined,
      mapRoot: joinsUserNamespace,
      uid: user.uid,
      gid: user.gid,
      workingDir,
      // An image that names no user expects root, who may write where it works.
      ownWorkingDir: user.isDefault && workingDir !== '/',
      files: [...network.files(hostname, ip, spec.network), ...engine.traits.files, ...(spec.files ?? [])],
      mountTargets,
      command: commandOf(ociProcess(spec, user)),
      places: mapped.includes(true) ? { dir: instance.placesMount, rootId: engine.ranges.rootId } : undefined,
    }),
  ]);
  signal?.throwIfAborted();
  const pid = await withBundle({ dir, config, spec, secrets: instance.secrets }, (bundle) => {
    const place = { id: spec.id, bundle, pidFile: join(dir, 'init.pid') };
    const run = snapshot ? runtime.restoreArgs({ ...place, state: snapshot.state }) : runtime.runArgs(place);
    return owner.start({
      logBytes,
      leaseFile: leaseFile(engine.instance.dataDir),
      runtime: joinsUserNamespace ? limited(spec.limits.openFiles, run) : run,
    });
  });
  signal?.throwIfAborted();
  return { record, process: config.process, init: await identify(pid) };
}

/**
 * Gives `start` the bundle that the runtime reads. What is kept of the sandbox is in `dir`, and has no secret; with those it is another one,
 * outside of the data directory, which is gone when the runtime has started the first process.
 */
async function withBundle<T>(
  { dir, config, spec, secrets }: { dir: string; config: OciConfig; spec: StagedSpec; secrets: string },
  start: (bundle: string) => Promise<T>,
): Promise<T> {
  if (!spec.secretEnv) return start(dir);
  const bundle = join(secrets, spec.id);
  const process = { ...config.process, env: mergeEnv(config.process.env, spec.secretEnv) };
  try {
    await mkdir(bundle, { mode: 0o700 });
    await writeFile(join(bundle, 'config.json'), JSON.stringify({ ...config, process }), { mode: 0o600 });
    return await start(bundle);
  } finally {
    await rm(bundle, { recursive: true, force: true });
  }
}

async function kindOf(path: string): Promise<'dir' | 'file'> {
  return (await stat(path)).isDirectory() ? 'dir' : 'file';
}

/** runc repeated the mappings of a user namespace that it joins until 1.2, which refuses them. */
function joinsWithMappings({ name, version: [major, minor] }: RuntimeInfo): boolean {
  return name.startsWith('runc ') && (major < 1 || (major === 1 && minor < 2));
}
