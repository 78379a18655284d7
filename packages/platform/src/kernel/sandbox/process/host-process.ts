import { existsSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { HELPER_ENV } from '../../processes/index.ts';
import { startExec } from '../exec/exec-handle.ts';
import type { StagedSpec } from '../host-stage.ts';
import { mergeEnv } from '../oci/oci-spec.ts';
import { type ExecHandle, type ExecOptions, SANDBOX_ENDPOINT_ADDRESS } from '../sandbox.ts';

export interface HostCommand {
  command: string[];
  cwd: string;
  env: Record<string, string>;
  openFiles: number;
}

/**
 * How the image's command runs on the host: an absolute path that exists in the image's root file system is taken from there,
 * anything else is the host's. The environment holds what the image and the caller say, and nothing of the server's own.
 */
export function hostCommand(
  spec: StagedSpec,
  place: { temp: string; port: number; sandboxEndpoint?: number | undefined },
): HostCommand {
  const { rootfs, config } = spec.image;
  const inImage = (path: string): string => {
    const mapped = rootfs !== '' && isAbsolute(path) ? join(rootfs, path) : path;
    return mapped !== path && existsSync(mapped) ? mapped : path;
  };
  const port = String(place.port);
  const given = Object.entries(spec.env).map(([name, value]): [string, string] => [
    name,
    value
      .replaceAll(/\b(?:platform|host\.docker)\.internal\b/g, '127.0.0.1')
      .replaceAll(
        `http://${SANDBOX_ENDPOINT_ADDRESS}`,
        place.sandboxEndpoint === undefined ? '' : `http://127.0.0.1:${place.sandboxEndpoint}`,
      ),
  ]);
  const env = mergeEnv([`PATH=${HELPER_ENV.PATH}`, ...config.env, `HOME=${place.temp}`, `TMPDIR=${place.temp}`], {
    ...Object.fromEntries(given),
    PORT: port,
    AGENTPLATFORM_PORT: port,
  });
  return {
    openFiles: spec.limits.openFiles,
    command: (spec.command ?? [...config.entrypoint, ...config.cmd]).map(inImage),
    cwd: rootfs !== '' && config.workingDir ? join(rootfs, config.workingDir) : place.temp,
    env: Object.fromEntries(
      env.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
    ),
  };
}

/** Starts an additional process beside the sandbox's own. Rejects with SandboxError `failed` when it cannot be started. */
export async function execOnHost(
  target: HostCommand,
  { env, cwd, tty, signal }: ExecOptions = {},
): Promise<ExecHandle> {
  signal?.throwIfAborted();
  return startExec(
    {
      argv: limited(target.openFiles, target.command),
      cwd: cwd ?? target.cwd,
      env: { ...(tty ? { TERM: 'xterm-256color' } : {}), ...target.env, ...env },
      // It leads a process group of its own, so that what it started ends with it.
      kill: async ({ pid }, wanted) => signalGroup(pid, wanted),
    },
    { tty, signal },
  );
}

/** The same command with the limits that need no isolation: open files, and no core dumps. */
export function limited(openFiles: number, command: string[]): [string, ...string[]] {
  return ['prlimit', `--nofile=${openFiles}:${openFiles}`, '--core=0:0', ...command];
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // It has ended meanwhile.
  }
}
