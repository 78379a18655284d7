import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Clock } from '../../clock.ts';
import type { RunCommand } from '../../processes/index.ts';
import { type CgroupLayout, groupDirectory, listGroups, readCgroupLayout, removeGroup } from '../host/cgroups.ts';
import { type Instance, openInstance, registryPlace } from '../host/instance.ts';
import { isGone } from '../host/is-gone.ts';
import { collectLapsed } from '../host/lapsed.ts';
import { leaseFile } from '../host/lease-file.ts';
import type { HostStage } from '../host-stage.ts';
import { SandboxNetwork } from '../network/network.ts';
import { Nft } from '../network/nft.ts';
import type { Nameserver } from '../network/nft-rules.ts';
import { OCI_DEFAULTS } from '../oci/oci-engine.ts';
import { items, property } from '../records/json-path.ts';
import { SandboxError } from '../sandbox.ts';
import { DockerApi, DockerError } from './docker-api.ts';
import { DockerNetworks, networksOf, removeNetwork } from './docker-network.ts';
import { DATA_LABEL, type DockerRecord, INSTANCE_LABEL, readLabels } from './docker-record.ts';
import { LeaseGuard } from './lease-guard.ts';
import { checkDaemon, dockerIsolation } from './probe-docker.ts';

export interface DockerProviderOptions {
  dataDir: string;
  stage: HostStage;
  clock: Clock;
  log: Logger;
  /** Where the daemon listens (default /var/run/docker.sock). */
  socketPath?: string;
  /** The daemon's runtime by name, e.g. `runsc`; its default when not given. */
  dockerRuntime?: string;
  nft?: string;
  nameserver?: Nameserver;
  /** Port of 127.0.0.1 that sandboxes reach the sandbox endpoint by; asked when the first one is made. */
  sandboxEndpoint?: () => number | undefined;
  /** Creates at work at once (default 8) and waiting (default 256). */
  creates?: { running: number; waiting: number };
  /** Bytes of a sandbox's log that are kept (default 4 MiB). */
  logBytes?: number;
  disk?: 'loop' | 'tmpfs';
  run?: RunCommand;
  runBase?: string;
}

export const DOCKER_DEFAULTS = {
  socketPath: '/var/run/docker.sock',
  nft: 'nft',
  disk: 'loop',
  runBase: '/run/agentplatform',
  logBytes: 4 * 1024 * 1024,
} as const;

/** A container that carries this platform's labels. */
export interface Labelled {
  container: string;
  running: boolean;
  record: DockerRecord;
}

/** What exists once the provider was used for the first time. */
export interface DockerEngine {
  api: DockerApi;
  instance: Instance;
  layout: CgroupLayout;
  firewall: SandboxNetwork;
  networks: DockerNetworks;
  guard: LeaseGuard;
  isolation: string;
  swapLimit: boolean;
  /** How the daemon makes control groups: by itself, or by systemd. */
  cgroupDriver: 'cgroupfs' | 'systemd';
}

/** Checks the daemon, claims names and addresses and puts the network rules in force. Rejects with SandboxError; nothing is half open then. */
export async function openDockerEngine(options: DockerProviderOptions, run: RunCommand): Promise<DockerEngine> {
  const { socketPath, nft: nftCommand, runBase } = { ...DOCKER_DEFAULTS, ...options };
  const api = new DockerApi(socketPath);
  const info = await api.json('GET', '/info').catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    throw new SandboxError('unavailable', `Sandboxes cannot be made: ${why}. Start dockerd, or use another provider.`);
  });
  const lacking = checkDaemon(info, options.dockerRuntime).map(({ what, remedy }) => `${what} (${remedy})`);
  if (lacking.length > 0) throw new SandboxError('unavailable', `The Docker daemon lacks ${lacking.join('; ')}.`);
  const instance = await openInstance(options.dataDir, runBase);
  const layout = await readCgroupLayout();
  const nft = new Nft(run, nftCommand);
  const registryDir = registryPlace(runBase);
  await removeLapsed(api, options.log);
  const { runtime } = OCI_DEFAULTS;
  const lapsed = await collectLapsed({ runBase, registryDir, layout, nft, run, runtime });
  if (lapsed.length > 0)
    options.log.info({ dataDirs: lapsed }, 'removed the sandboxes of platforms whose data directory is gone');
  const firewall = await SandboxNetwork.open({
    instance,
    run,
    nft,
    cniDir: undefined,
    registryDir,
    nameserver: options.nameserver,
    sandboxEndpoint: options.sandboxEndpoint?.(),
  });
  const networks = new DockerNetworks({ api, firewall, instance });
  await networks.load();
  const cgroupDriver = property(info, 'CgroupDriver') === 'systemd' ? 'systemd' : 'cgroupfs';
  return {
    api,
    instance,
    layout,
    firewall,
    networks,
    guard: new LeaseGuard({
      lease: leaseFile(instance.dataDir),
      pidFile: join(instance.run, 'lease-guard.pid'),
      group: groupDirectory(layout, cgroupOfAll({ instance, cgroupDriver })),
      clock: options.clock,
      log: options.log,
    }),
    isolation: dockerIsolation(info, options.dockerRuntime),
    swapLimit: property(info, 'SwapLimit') === true,
    cgroupDriver,
  };
}

/** Containers of this platform, those that have ended included. */
export async function listContainers({ api, instance }: DockerEngine): Promise<Labelled[]> {
  const found = await containers(api, `${INSTANCE_LABEL}=${instance.prefix}`);
  return found.flatMap((container) => {
    const record = readLabels(property(container, 'Labels'));
    const running = property(container, 'State') === 'running';
    return record ? [{ container: String(property(container, 'Id')), running, record }] : [];
  });
}

/** Whether a container, by its id or name, is one of this platform: anybody may have given theirs that name. */
export async function isOwn(
  { api, instance }: Pick<DockerEngine, 'api' | 'instance'>,
  container: string,
): Promise<boolean> {
  const inspected = await api.json('GET', `/containers/${container}/json`).catch((error: unknown) => {
    if (error instanceof DockerError && error.status === 404) return undefined;
    throw error;
  });
  return property(property(property(inspected, 'Config'), 'Labels'), INSTANCE_LABEL) === instance.prefix;
}

/** Ends and removes a container; gone already is no error. */
export async function removeContainer(api: DockerApi, container: string): Promise<void> {
  await api.json('DELETE', `/containers/${container}`, { query: { force: '1', v: '1' } }).catch((error: unknown) => {
    // 409: somebody else is removing it.
    if (!(error instanceof DockerError && [404, 409].includes(error.status))) throw error;
  });
}

type CgroupNames = Pick<DockerEngine, 'instance' | 'cgroupDriver'>;

/** What the daemon is told, and where its group then is: one of the sandbox's own above the container's keeps its counts past the end. */
export function cgroupOf(
  { instance, cgroupDriver }: CgroupNames,
  id: string,
): { parent: string; group(container: string): string } {
  if (cgroupDriver === 'cgroupfs') {
    const parent = `${instance.cgroupParent}/${id}`;
    return { parent, group: () => parent };
  }
  const slice = sliceOf(instance);
  return { parent: slice, group: (container) => `/${slice}/docker-${container}.scope` };
}

/** The group above those of all containers. */
function cgroupOfAll({ instance, cgroupDriver }: CgroupNames): string {
  return cgroupDriver === 'cgroupfs' ? instance.cgroupParent : `/${sliceOf(instance)}`;
}

function sliceOf({ prefix }: Instance): string {
  return `${prefix}.slice`;
}

export async function removeGroups({ layout, instance }: DockerEngine, id: string): Promise<void> {
  const parent = `${instance.cgroupParent}/${id}`;
  for (const name of await listGroups(layout, parent)) await removeGroup(layout, `${parent}/${name}`);
  await removeGroup(layout, parent);
}

/**
 * Removes what of the daemon belongs to platforms whose data directory is gone, e.g. a test that was killed: containers, which no server
 * can take over any more, and networks, whose addresses the daemon gives nobody else.
 */
async function removeLapsed(api: DockerApi, log: Logger): Promise<void> {
  const remove = async (found: unknown[], removeOne: (api: DockerApi, id: string) => Promise<void>): Promise<void> => {
    for (const labelled of found) {
      if (!(await isLapsed(labelled))) continue;
      await removeOne(api, String(property(labelled, 'Id'))).catch((error: unknown) => {
        log.warn({ err: error }, 'something of a platform whose data directory is gone could not be removed');
      });
    }
  };
  await remove(await containers(api, INSTANCE_LABEL), removeContainer);
  await remove(await networksOf(api, INSTANCE_LABEL), removeNetwork);
}

async function isLapsed(labelled: unknown): Promise<boolean> {
  const dataDir = property(property(labelled, 'Labels'), DATA_LABEL);
  return typeof dataDir === 'string' && (await isGone(dataDir));
}

async function containers(api: DockerApi, label: string): Promise<unknown[]> {
  const found = await api.json('GET', '/containers/json', {
    query: { all: '1', filters: JSON.stringify({ label: [label] }) },
  });
  return items({ found }, 'found');
}
