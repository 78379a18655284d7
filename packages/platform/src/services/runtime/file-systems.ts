import type { control, FieldProblem } from '@agentplatform/contract';
import { errors } from '@agentplatform/contract';
import type { Volume } from '../../kernel/sandbox/index.ts';
import type { SessionStorage } from '../../kernel/session-storage/index.ts';
import type { SessionVolumes } from '../../kernel/sessions/index.ts';
import type { SharedPlaces } from '../../kernel/shared-places/index.ts';
import type { RuntimeDefinition } from './runtime.ts';

export interface FileSystemsDeps {
  /** Why there are no mounts here at all, e.g. for want of isolation; undefined when there are. */
  unavailable: string | undefined;
  storage: Pick<SessionStorage, 'holds' | 'diskBytes' | 'attach' | 'detach' | 'forget'> | undefined;
  places: Pick<SharedPlaces, 'find' | 'ids' | 'unavailable'>;
  /** Whether an execution role is allowed an action on a resource. */
  roleMay(roleArn: string, action: string, resource: string): boolean;
}

type Configuration = control.FilesystemConfiguration;
type FileSystem =
  | { kind: 'session'; target: string }
  | { kind: 'shared'; target: string; arn: string; service: 'elasticfilesystem' | 's3files' }
  | { kind: 'volume'; target: string };

/** What a runtime's `filesystemConfigurations` mean for its sandboxes (COMPATIBILITY 1): storage of the session, and places that many share. */
export class FileSystems {
  readonly #deps: FileSystemsDeps;

  constructor(deps: FileSystemsDeps) {
    this.#deps = deps;
  }

  /** What the model's constraints do not say. */
  problems({
    filesystemConfigurations = [],
    roleArn,
  }: Pick<RuntimeDefinition, 'filesystemConfigurations' | 'roleArn'>): FieldProblem[] {
    const { unavailable } = this.#deps;
    if (filesystemConfigurations.length > 0 && unavailable !== undefined)
      return [{ name: 'filesystemConfigurations', message: `is not offered on this server: ${unavailable}` }];
    const taken = new Set<string>();
    let stored = false;
    return filesystemConfigurations.flatMap((configuration, i) => {
      const name = `filesystemConfigurations[${i}]`;
      const system = read(configuration);
      const again = taken.has(system.target);
      taken.add(system.target);
      if (/^\/mnt\/\.{1,2}$/.test(system.target))
        return [{ name, message: 'must be mounted on a directory below /mnt' }];
      if (again) return [{ name, message: `is the second one on ${system.target}` }];
      if (system.kind === 'volume')
        return [{ name, message: 'names a volume of a capacity provider, and this server has none' }];
      if (system.kind === 'shared') return this.#sharedProblems(name, system, roleArn);
      if (!this.#deps.storage)
        return [{ name, message: 'sessionStorage is not offered on this server: it needs loop devices and root' }];
      const second = stored;
      stored = true;
      return second ? [{ name, message: 'is a second sessionStorage; a session has one' }] : [];
    });
  }

  /** Volumes of one sandbox. Throws AccessDeniedException when the role may not mount one. */
  volumes({
    filesystemConfigurations = [],
    roleArn,
  }: Pick<RuntimeDefinition, 'filesystemConfigurations' | 'roleArn'>): Volume[] {
    return filesystemConfigurations.map((configuration): Volume => {
      const system = read(configuration);
      const { target } = system;
      if (system.kind === 'session') return { kind: 'session-storage', target };
      if (system.kind === 'volume') throw errors.internal('A volume was accepted that cannot be mounted.');
      const { arn, service } = system;
      const accessPoint = this.#deps.places.find(arn);
      if (accessPoint === undefined || !this.#deps.roleMay(roleArn, `${service}:ClientMount`, arn)) {
        throw errors.accessDenied(`The runtime's role may not mount ${arn}, or it is gone.`, {
          remedy: `Allow ${roleArn} the action ${service}:ClientMount on it. The operator lists the places in sandbox.sharedMounts.`,
        });
      }
      const readOnly = !this.#deps.roleMay(roleArn, `${service}:ClientWrite`, arn);
      return { kind: 'shared-place', accessPoint, target, readOnly };
    });
  }

  /** Those volumes that are the session's own, its storage; undefined for a runtime without. */
  sessionVolumes({ filesystemConfigurations = [] }: RuntimeDefinition): SessionVolumes | undefined {
    return filesystemConfigurations.some((one) => one.sessionStorage) ? this.#storage() : undefined;
  }

  /** Removes what the sessions of a deleted runtime have stored. */
  async forget(runtimeArn: string): Promise<void> {
    await this.#deps.storage?.forget(runtimeArn);
  }

  #sharedProblems(name: string, { arn, service }: FileSystem & { kind: 'shared' }, roleArn: string): FieldProblem[] {
    const { places, roleMay } = this.#deps;
    const id = places.find(arn);
    if (id === undefined) {
      const known = places.ids().join(', ') || 'none';
      return [
        { name, message: `names ${arn}, which is not in sandbox.sharedMounts of this server; there are: ${known}` },
      ];
    }
    const unavailable = places.unavailable(id);
    if (unavailable !== undefined) return [{ name, message: `is not offered on this server: ${unavailable}` }];
    if (roleMay(roleArn, `${service}:ClientMount`, arn)) return [];
    return [{ name, message: `names ${arn}, on which ${roleArn} is not allowed ${service}:ClientMount` }];
  }

  #storage(): NonNullable<FileSystemsDeps['storage']> {
    if (this.#deps.storage) return this.#deps.storage;
    throw errors.internal('Session storage was accepted where there is none.');
  }
}

function read(configuration: Configuration): FileSystem {
  const { sessionStorage, s3FilesAccessPoint, efsAccessPoint, capacityProviderVolume } = configuration;
  const target = (path: string): string => path.replace(/\/$/, '');
  if (sessionStorage) return { kind: 'session', target: target(sessionStorage.mountPath) };
  if (efsAccessPoint) {
    const { accessPointArn, mountPath } = efsAccessPoint;
    return { kind: 'shared', target: target(mountPath), arn: accessPointArn, service: 'elasticfilesystem' };
  }
  if (s3FilesAccessPoint) {
    const { accessPointArn, mountPath } = s3FilesAccessPoint;
    return { kind: 'shared', target: target(mountPath), arn: accessPointArn, service: 's3files' };
  }
  return { kind: 'volume', target: target(capacityProviderVolume?.mountPath ?? '') };
}
