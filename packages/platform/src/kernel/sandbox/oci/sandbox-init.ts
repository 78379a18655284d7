import type { HostMount, StagedSpec } from '../host-stage.ts';

/**
 * The first process of a sandbox reaps what nobody else does: the agent's own children may leave children of theirs behind, which an agent
 * does not expect to be its own, and each that was never reaped counts towards the bound on processes. `tini` hands signals on to the agent
 * and ends as it does. Debian and Ubuntu have it in the package of the same name, linked statically, so that it runs in any image.
 */
export const INIT_PROGRAM = '/usr/bin/tini-static';

/** A name that images do not use. */
const INSIDE = '/.agentplatform-init';

const INIT_MOUNT: HostMount = { source: INIT_PROGRAM, target: INSIDE, readOnly: true };

/** The mounts of a sandbox, with its init last. */
export function withInit({ mounts, ownInit }: Pick<StagedSpec, 'mounts' | 'ownInit'>): HostMount[] {
  return ownInit ? mounts : [...mounts, INIT_MOUNT];
}

/** The command line of the first process: the init with `args` as its child. */
export function underInit(args: readonly string[], { ownInit }: Pick<StagedSpec, 'ownInit'>): string[] {
  return ownInit ? [...args] : [INSIDE, '--', ...args];
}
