import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { identify, type RunCommand, runCommand } from '../../processes/index.ts';
import { CreateQueue } from '../create-queue.ts';
import { readUsage, removeGroup } from '../host/cgroups.ts';
import { diskBytes } from '../host/disk-bytes.ts';
import type { StagedSpec } from '../host-stage.ts';
import type { ProvidedSandbox } from '../provided-sandbox.ts';
import { property } from '../records/json-path.ts';
import {
  type NetworkPolicy,
  type ProbeReport,
  type Sandbox,
  SandboxError,
  type SandboxImage,
  type SandboxProvider,
  type SandboxSpec,
} from '../sandbox.ts';
import { asSandboxError, SandboxTable } from '../sandbox-table.ts';
import {
  cgroupOf,
  DOCKER_DEFAULTS,
  type DockerEngine,
  type DockerProviderOptions,
  isOwn,
  type Labelled,
  listContainers,
  openDockerEngine,
  removeContainer,
  removeGroups,
} from './docker-engine.ts';
import { endLeftExecs } from './docker-exec.ts';
import { listRoots, unmountRoot } from './docker-root.ts';
import { dockerSandbox } from './docker-sandbox.ts';
import { type DockerStarted, startContainer } from './docker-start.ts';
import { probeDocker } from './probe-docker.ts';

/** Sandboxes as containers of a Docker daemon on this host, each in a network of its own under the platform's packet rules. */
export class DockerProvider implements SandboxProvider {
  readonly name = 'docker';
  #options: DockerProviderOptions;
  #run: RunCommand;
  #table: SandboxTable;
  #engine: Promise<DockerEngine> | undefined;
  #closing = new AbortController();

  constructor(options: DockerProviderOptions) {
    this.#options = options;
    this.#run = options.run ?? runCommand;
    const queue = new CreateQueue(options.creates ?? { running: 8, waiting: 256 });
    this.#table = new SandboxTable(options.stage, queue, this.#closing.signal);
  }

  probe(): Promise<ProbeReport> {
    const { socketPath, nft, disk, dockerRuntime: runtime } = { ...DOCKER_DEFAULTS, ...this.#options };
    return probeDocker({ socketPath, runtime, nft, disk, run: this.#run });
  }

  async stage(image: SandboxImage, signal?: AbortSignal): Promise<void> {
    await this.#options.stage.image(image, signal);
  }

  create(spec: SandboxSpec, signal?: AbortSignal): Promise<Sandbox> {
    return this.#table.create(
      spec,
      signal,
      () => this.#ready(),
      (engine, staged) => this.#make(engine, staged, signal),
    );
  }

  async *reattach(): AsyncIterable<Sandbox> {
    const engine = await this.#ready();
    await engine.guard.ensure();
    for (const { container, running, record } of await listContainers(engine)) {
      if (!running || this.#table.has(record.id)) continue;
      // One that cannot be taken up keeps nobody out: the sweep after this removes it.
      const sandbox = await this.#attach(engine, container, record).catch((error: unknown) => {
        this.#options.log.error({ err: error, sandbox: record.id }, 'a sandbox of before cannot be taken up');
      });
      if (!sandbox) continue;
      this.#table.set(sandbox);
      yield sandbox;
    }
  }

  async sweep(keep?: ReadonlySet<string>): Promise<string[]> {
    const engine = await this.#ready();
    const { instance, networks } = engine;
    const { ended, kept, making, errors } = await this.#table.sweep(keep);
    const removed = new Set(ended);
    const found = await listContainers(engine);
    const directories = await readdir(instance.sandboxes);
    const ids = new Set([...found.map(({ record }) => record.id), ...directories, ...(await listRoots(instance))]);
    for (const id of ids) {
      if (kept.has(id)) continue;
      const labelled = found.find(({ record }) => record.id === id);
      await this.#remove(engine, id, labelled).catch((error: unknown) => errors.push(error));
      removed.add(id);
    }
    if (!making && !this.#table.making) {
      const slots = new Set(found.filter(({ record }) => kept.has(record.id)).map(({ record }) => record.slot));
      await networks.sweep(slots).catch((error: unknown) => errors.push(error));
    }
    if (errors.length > 0)
      throw new AggregateError(errors, `${errors.length} things of ended sandboxes could not be removed`);
    return [...removed];
  }

  /** Leaves running sandboxes to the next server; with none left it removes the table and the address claim as well. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    await this.#table.endCommands();
    const engine = await this.#engine?.catch(() => undefined);
    if (!engine) return;
    const { instance, firewall, layout, guard, api } = engine;
    const remaining = await readdir(instance.sandboxes).catch(() => ['unknown']);
    await guard.close({ idle: remaining.length === 0 });
    if (remaining.length === 0) {
      await firewall.dispose();
      await removeGroup(layout, instance.cgroupParent).catch(() => undefined);
      await rm(instance.run, { recursive: true, force: true });
    }
    api.close();
  }

  async #attach(engine: DockerEngine, container: string, record: DockerStarted['record']): Promise<ProvidedSandbox> {
    const inspected = await engine.api.json('GET', `/containers/${container}/json`);
    const pid = Number(property(property(inspected, 'State'), 'Pid'));
    if (pid > 1) await endLeftExecs(container, pid);
    return this.#sandbox(engine, { record, container, init: pid > 1 ? await identify(pid) : undefined });
  }

  #ready(): Promise<DockerEngine> {
    this.#engine ??= openDockerEngine(this.#options, this.#run).catch((error: unknown) => {
      this.#engine = undefined;
      throw asSandboxError(error);
    });
    return this.#engine;
  }

  async #make(engine: DockerEngine, spec: StagedSpec, signal: AbortSignal | undefined): Promise<ProvidedSandbox> {
    const { log, disk, logBytes, dockerRuntime: runtime } = { ...DOCKER_DEFAULTS, ...this.#options };
    const dir = join(engine.instance.sandboxes, spec.id);
    await mkdir(dir, { mode: 0o700 }).catch((error: unknown) => {
      throw new SandboxError('refused', `A sandbox with the id ${spec.id} is still there; sweep removes it.`, {
        cause: error,
      });
    });
    let attached: Attached | undefined;
    try {
      signal?.throwIfAborted();
      await engine.guard.ensure();
      const slot = await engine.networks.take(spec.network);
      attached = { container: `${engine.instance.prefix}-${spec.id}`, slot, network: spec.network };
      const options = { engine, spec, slot, dir, disk, runtime, logBytes, run: this.#run, signal };
      return this.#sandbox(engine, await startContainer(options));
    } catch (error) {
      await this.#removeAttached(engine, spec.id, attached).catch((cause: unknown) => {
        log.error(
          { err: cause, sandbox: spec.id },
          'a sandbox that failed to start left something behind; the next sweep tries again',
        );
      });
      throw error;
    }
  }

  #sandbox(engine: DockerEngine, { record, container, init }: DockerStarted): ProvidedSandbox {
    const { id, slot, network } = record;
    const group = cgroupOf(engine, id).group(container);
    return dockerSandbox({
      api: engine.api,
      record,
      container,
      init,
      clock: this.#options.clock,
      closing: this.#closing.signal,
      readUsage: () => readUsage(engine.layout, group),
      diskBytes: () => diskBytes(join(engine.instance.sandboxes, id)),
      remove: async () => {
        await this.#removeAttached(engine, id, { container, slot, network });
        this.#table.delete(id);
      },
    });
  }

  #remove(engine: DockerEngine, id: string, labelled: Labelled | undefined): Promise<void> {
    const attached = labelled && { container: labelled.container, ...labelled.record };
    return this.#removeAttached(engine, id, attached);
  }

  async #removeAttached(engine: DockerEngine, id: string, attached: Attached | undefined): Promise<void> {
    const { api, instance, networks } = engine;
    if (attached) {
      if (await isOwn(engine, attached.container)) await removeContainer(api, attached.container);
      await networks.release(attached.slot, attached.network);
    }
    await unmountRoot(instance, id, this.#run);
    await removeGroups(engine, id);
    await rm(join(instance.sandboxes, id), { recursive: true, force: true });
  }
}

interface Attached {
  /** Id or name. */
  container: string;
  slot: number;
  network: NetworkPolicy;
}
