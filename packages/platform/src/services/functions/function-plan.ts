import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { formerlyGiven, type SandboxRole } from '../../kernel/auth/index.ts';
import type { NetworkPolicy, SandboxLimits } from '../../kernel/sandbox/index.ts';
import { pingHealth, type SessionPlan } from '../../kernel/sessions/index.ts';
import { LATEST, type PlatformFunction } from './function.ts';
import { functionRuntime } from './function-runtimes.ts';
import { FUNCTION_SESSIONS } from './session-kind.ts';

export interface FunctionPlanDeps {
  limits: SandboxLimits;
  network: NetworkPolicy;
  region: string;
  /** What an AWS SDK needs in its environment to call this platform as the role. */
  roleEnvironment(role: SandboxRole): Record<string, string>;
  /** Brings the image of a function's code to this machine. */
  stage(fn: PlatformFunction, signal: AbortSignal): Promise<void>;
  idleSeconds: number;
  /** Most sandboxes of one revision that stand ready. */
  pooled: number;
}

/** A sandbox takes no event when it is older, and ends some time later by itself. */
export const MAX_AGE_SECONDS = 7200;
/** The longest event, and time for its sandbox to begin. */
const LAST_EVENT_SECONDS = 1200;

const PORT = 8080;
const MIB = 2 ** 20;
/** What the interpreter and the isolation need beside the function's own memory. */
const OVERHEAD_BYTES = 64 * MIB;

const HOSTS = join(import.meta.dirname, '../../../../../images/functions');
const host = (file: string): string => readFileSync(join(HOSTS, file), 'utf8');

/** What runs the handler is no part of the image: it is always this version's. */
const COMMANDS = {
  node: ['node', '--input-type=module', '--eval', host('host.mjs')],
  python: ['python3', '-c', host('host.py')],
};

/** Most MiB that a function may ask for here. */
export function mostMemoryMiB({ memoryBytes }: Pick<SandboxLimits, 'memoryBytes'>): number {
  return Math.floor((memoryBytes - OVERHEAD_BYTES) / MIB);
}

/** How a sandbox of this revision of a function is made and watched. */
export function functionPlan(fn: PlatformFunction, deps: FunctionPlanDeps): SessionPlan {
  const { arn, revision, code, memoryMiB } = fn;
  return {
    kind: FUNCTION_SESSIONS,
    version: revision,
    image: code.imageDigest,
    lifecycle: { idleSeconds: deps.idleSeconds, maxLifetimeSeconds: MAX_AGE_SECONDS + LAST_EVENT_SECONDS },
    port: PORT,
    health: pingHealth,
    pool: { resourceArn: arn, max: deps.pooled },
    async sandbox(id, signal) {
      await deps.stage(fn, signal);
      const given = fn.given ?? formerlyGiven(Object.values(fn.environment), arn);
      const role = { sandboxId: id, roleArn: fn.role, sourceArn: arn, given };
      return {
        id,
        image: { digest: code.imageDigest },
        command: COMMANDS[functionRuntime(fn.runtime)?.host ?? 'node'],
        env: { ...environmentOf(fn, deps.region), ...deps.roleEnvironment(role), ...fn.environment },
        volumes: [],
        network: { ...deps.network, sandboxEndpoint: true },
        limits: { ...deps.limits, memoryBytes: memoryMiB * MIB + OVERHEAD_BYTES },
        labels: { kind: FUNCTION_SESSIONS, function: arn, revision },
      };
    },
  };
}

/** The variables that functions are used to find (AWS Lambda developer guide: defined runtime environment variables). */
function environmentOf(
  { name, runtime, handler, memoryMiB }: PlatformFunction,
  region: string,
): Record<string, string> {
  return {
    _HANDLER: handler,
    AWS_REGION: region,
    AWS_DEFAULT_REGION: region,
    AWS_EXECUTION_ENV: `AWS_Lambda_${runtime}`,
    AWS_LAMBDA_FUNCTION_NAME: name,
    AWS_LAMBDA_FUNCTION_VERSION: LATEST,
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(memoryMiB),
    AWS_LAMBDA_LOG_GROUP_NAME: `/aws/lambda/${name}`,
    LAMBDA_TASK_ROOT: '/var/task',
  };
}
