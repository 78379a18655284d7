import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { sleep } from '../../clock.ts';
import {
  endProcess,
  identify,
  isAlive,
  type ProcessIdentity,
  type RunCommand,
  runCommand,
  signalProcess,
} from '../../processes/index.ts';
import { CreateQueue } from '../create-queue.ts';
import { type ExecTarget, endLeftCommands, execInSandbox } from '../exec/exec.ts';
import { readOomKills, readUsage, removeGroup } from '../host/cgroups.ts';
import { diskBytes } from '../host/disk-bytes.ts';
import type { StagedSpec } from '../host-stage.ts';
import { ownedSandbox } from '../owner/owned-sandbox.ts';
import type { Owner } from '../owner/owner.ts';
import { OwnerWatch } from '../owner/owner-watch.ts';
import type { ProvidedSandbox } from '../provided-sandbox.ts';
import { property } from '../records/json-path.ts';
import { readRecord, type SandboxRecord } from '../records/sandbox-record.ts';
import {
  type ProbeReport,
  type Sandbox,
  SandboxError,
  type SandboxImage,
  type SandboxProvider,
  type SandboxSpec,
} from '../sandbox.ts';
import { asSandboxError, SandboxTable } from '../sandbox-table.ts';
import { resolveImageUser } from './image-user.ts';
import { attachment, type Engine, OCI_DEFAULTS, type OciProviderOptions, openEngine } from './oci-engine.ts';
import { takeSnapshot } from './oci-snapshot.ts';
import type { OciProcess } from './oci-spec.ts';
import { type Started, startSandbox } from './oci-start.ts';
import { probeOci } from './probe-oci.ts';
import { type SnapshotFiles, snapshotKey } from './snapshots.ts';
import { sweepSandboxes } from './sweep.ts';

const MIB = 1024 * 1024;
/** How long the owner of a sandbox whose first process has ended may take to write down its exit status. */
const OWNER_ENDS_MS = 2000;

/** Sandboxes by an OCI runtime's command line, with no daemon; each has an owner process (owner.pl) that outlives the server. */
export class OciProvider implements SandboxProvider {
  readonly name = 'oci';
  #options: OciProviderOptions;
  #run: RunCommand;
  #table: SandboxTable;
  #engine: Promise<Engine> | undefined;
  #closing = new AbortController();
  #owners: OwnerWatch;

  constructor(options: OciProviderOptions) {
    this.#options = options;
    this.#owners = new OwnerWatch(options.clock, this.#closing.signal);
    this.#run = options.run ?? runCommand;
    const queue = new CreateQueue(options.creates ?? { running: 8, waiting: 256 });
    this.#table = new SandboxTable(options.stage, queue, this.#closing.signal);
  }

  probe(): Promise<ProbeReport> {
    const { runtime, nft, cniDir, disk, dataDir, seen = [] } = { ...OCI_DEFAULTS, ...this.#options };
    const files = [{ of: 'the data directory', path: dataDir, always: true }, ...seen];
    return probeOci({ runtime, nft, cniDir, disk, run: this.#run, arch: process.arch, files });
  }

  async stage(image: SandboxImage, signal?: AbortSignal): Promise<void> {
    await this.#options.stage.image(image, signal);
  }

  create(spec: SandboxSpec, signal?: AbortSignal): Promise<Sandbox> {
    return this.#table.create(
      spec,
      signal,
      () => this.#ready(),
      (engine, staged) => this.#copyOrMake(engine, staged, signal),
    );
  }

  async keepsSnapshots(): Promise<boolean> {
    return (await this.#ready()).snapshots !== undefined;
  }

  async *reattach(): AsyncIterable<Sandbox> {
    const engine = await this.#ready();
    for (const id of await readdir(engine.instance.sandboxes)) {
      if (this.#table.has(id)) continue;
      // One that cannot be taken up keeps nobody out: the sweep after this removes it.
      const sandbox = await this.#attach(engine, id).catch((error: unknown) => {
        this.#options.log.error({ err: error, sandbox: id }, 'a sandbox of before cannot be taken up');
      });
      if (!sandbox) continue;
      this.#table.set(sandbox);
      yield sandbox;
    }
  }

  async sweep(keep?: ReadonlySet<string>): Promise<string[]> {
    const engine = await this.#ready();
    const { instance, layout, network, ranges, runtime, pool } = engine;
    const { ended, kept, making, errors } = await this.#table.sweep(keep);
    const pooled = pool.owners.map((owner) => ({ slot: owner.slot, hostInterface: owner.address.hostInterface }));
    const swept = await sweepSandboxes(
      { instance, layout, network, ranges, runtime, kept, pooled, busy: making },
      errors,
    );
    return [...ended, ...swept];
  }

  /** Leaves running sandboxes to the next server; with none left it removes the table and the address claim as well. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    await this.#table.endCommands();
    const engine = await this.#engine?.catch(() => undefined);
    if (!engine) return;
    await engine.pool.close();
    const remaining = await readdir(engine.instance.sandboxes).catch(() => ['unknown']);
    if (remaining.length > 0) return;
    await engine.network.dispose();
    await engine.ranges.sweep(new Set());
    await removeGroup(engine.layout, engine.instance.cgroupParent).catch(() => undefined);
    await rm(engine.instance.run, { recursive: true, force: true });
  }

  #ready(): Promise<Engine> {
    this.#engine ??= this.#open().catch((error: unknown) => {
      this.#engine = undefined;
      throw asSandboxError(error);
    });
    return this.#engine;
  }

  #open(): Promise<Engine> {
    return openEngine(this.#options, this.#run);
  }

  async #copyOrMake(engine: Engine, spec: StagedSpec, signal: AbortSignal | undefined): Promise<ProvidedSandbox> {
    const { snapshots, info } = engine;
    const key = snapshotKey(spec, info.name);
    const from = spec.snapshot && (await snapshots?.find(key));
    if (!snapshots || !from) return this.#make(engine, spec, undefined, signal);
    const forget = (): Promise<void> => snapshots.forget(key);
    try {
      return await this.#make(engine, spec, { ...from, forget }, signal);
    } catch (error) {
      signal?.throwIfAborted();
      this.#options.log.warn(
        { err: error, sandbox: spec.id },
        'a snapshot could not be restored; the sandbox begins anew',
      );
      await forget();
      return this.#make(engine, spec, undefined, signal);
    }
  }

  async #make(
    engine: Engine,
    spec: StagedSpec,
    snapshot: (SnapshotFiles & { forget(): Promise<void> }) | undefined,
    signal: AbortSignal | undefined,
  ): Promise<ProvidedSandbox> {
    const { instance } = engine;
    const { log, disk, logBytes } = { ...OCI_DEFAULTS, logBytes: 4 * MIB, ...this.#options };
    const dir = join(instance.sandboxes, spec.id);
    await mkdir(dir, { mode: 0o700 }).catch((error: unknown) => {
      throw new SandboxError('refused', `A sandbox with the id ${spec.id} is still there; sweep removes it.`, {
        cause: error,
      });
    });
    let owner: Owner | undefined;
    try {
      const [taken, user] = await Promise.allSettled([
        takeOwner(engine, spec, log),
        resolveImageUser(spec.image.rootfs, spec.image.config.user),
      ]);
      if (taken.status === 'fulfilled') owner = taken.value;
      if (taken.status === 'rejected') throw taken.reason;
      if (user.status === 'rejected') throw user.reason;
      const started = await startSandbox({
        engine,
        spec,
        owner: taken.value,
        user: user.value,
        dir,
        disk,
        logBytes,
        snapshot,
        signal,
      });
      const { ended } = taken.value;
      return this.#sandbox(engine, started.record, started.process, started.init, ended, {
        ...(snapshot && { copied: { forget: snapshot.forget } }),
        ...(spec.snapshot && engine.snapshots && { snapshot: () => this.#snapshot(engine, spec, started, ended) }),
      });
    } catch (error) {
      const attached = owner && {
        ...attachment(owner),
        owner: owner.identity,
        network: spec.network,
        firstId: owner.ids.first,
      };
      await this.#remove(engine, spec.id, attached).catch((cause: unknown) => {
        log.error(
          { err: cause, sandbox: spec.id },
          'a sandbox that failed to start left something behind; the next sweep tries again',
        );
      });
      throw error;
    }
  }

  async #snapshot(
    engine: Engine,
    spec: StagedSpec,
    { record, init }: Started,
    ownerEnded: Promise<void>,
  ): Promise<void> {
    const options = { engine, record, init, run: this.#run, clock: this.#options.clock, ownerEnded };
    await engine.snapshots?.keep(snapshotKey(spec, engine.info.name), (files) => takeSnapshot(options, files));
  }

  async #attach(engine: Engine, id: string): Promise<ProvidedSandbox | undefined> {
    const dir = join(engine.instance.sandboxes, id);
    const record = await readRecord(dir);
    if (!record || !(await isAlive(record.owner))) return undefined;
    const pid = Number(await readFile(join(dir, 'init.pid'), 'utf8').catch(() => ''));
    const init = pid > 1 ? await identify(pid) : undefined;
    const config = await readFile(join(dir, 'config.json'), 'utf8').then(
      (text): unknown => JSON.parse(text),
      () => undefined,
    );
    if (!init || !hasProcess(config)) return undefined;
    await endLeftCommands(execTarget(engine, record, config.process));
    return this.#sandbox(engine, record, config.process, init, this.#owners.ended(record.owner));
  }

  #sandbox(
    engine: Engine,
    record: SandboxRecord,
    process: OciProcess,
    init: ProcessIdentity | undefined,
    ownerEnded: Promise<void>,
    snapshots: Pick<ProvidedSandbox, 'copied' | 'snapshot'> = {},
  ): ProvidedSandbox {
    const { instance, layout } = engine;
    const { id, labels, isolation, owner, ip } = record;
    const dir = join(instance.sandboxes, id);
    const cgroup = `${instance.cgroupParent}/${id}`;
    return ownedSandbox({
      id,
      labels,
      isolation,
      dir,
      init,
      ownerEnded,
      clock: this.#options.clock,
      parts: {
        ...snapshots,
        address: (port) => ({ host: ip, port }),
        exec: (command, options, serial) =>
          execInSandbox({ ...execTarget(engine, record, process), serial }, command, options),
        readUsage: () => readUsage(layout, cgroup),
        diskBytes: () => diskBytes(dir),
        ranOutOfMemory: async () => (await readOomKills(layout, cgroup)) > 0,
        kill: async () => {
          // The first process takes every other of its namespace with it, and the owner sees it end.
          if (init && (await signalProcess(init, 'SIGKILL'))) return;
          // The owner of one that has ended by itself is about to write down how; one without a number had ended before it was looked at.
          await Promise.race([ownerEnded, sleep(this.#options.clock, OWNER_ENDS_MS)]);
          await signalProcess(owner, 'SIGKILL');
        },
        remove: async () => {
          await this.#remove(engine, id, record);
          this.#table.delete(id);
        },
      },
    });
  }

  async #remove(engine: Engine, id: string, attached: Attached | undefined): Promise<void> {
    const { instance, layout, network, ranges, runtime } = engine;
    // Before the runtime looks: what the owner has not reaped yet would be a running sandbox to it.
    if (attached) await endProcess(attached.owner);
    await runtime.remove(id);
    await Promise.all([
      removeGroup(layout, `${instance.cgroupParent}/${id}`),
      attached ? network.release(attached, attached.network) : undefined,
    ]);
    // Last: nothing that has one of its ids lives any more.
    if (attached?.firstId !== undefined) await ranges.release(attached.firstId);
    await rm(join(instance.sandboxes, id), { recursive: true, force: true });
  }
}

function execTarget(
  { instance, runtime, traits: { signalsInside } }: Engine,
  { id, openFiles }: Pick<SandboxRecord, 'id' | 'openFiles'>,
  process: OciProcess,
): Omit<ExecTarget, 'serial'> {
  const cgroup = `${instance.cgroupParent}/${id}`;
  return { id, dir: join(instance.sandboxes, id), runtime, cgroup, process, openFiles, signalsInside };
}

/** A ready owner, or one made for a sandbox whose files cannot all be shown with the ids that those in the pool have. */
async function takeOwner({ pool, idMounts, ownIds, makeOwner }: Engine, spec: StagedSpec, log: Logger): Promise<Owner> {
  // That none has them was told at the start.
  const places = ownIds ? await idMounts.unmappable(spec) : [];
  if (places.length === 0) return pool.take();
  log.warn(
    { sandbox: spec.id, places },
    'a sandbox shares with others what the kernel counts by id: the files at these places cannot be shown with other owners',
  );
  return makeOwner(false);
}

type Attached = Pick<SandboxRecord, 'owner' | 'slot' | 'hostInterface' | 'network' | 'firstId'>;

/** config.json in our own directory is our own writing; this only guards against a half-written one. */
function hasProcess(config: unknown): config is { process: OciProcess } {
  return Array.isArray(property(property(config, 'process'), 'env'));
}
