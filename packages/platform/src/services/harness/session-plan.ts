import type { SandboxRole } from '../../kernel/auth/index.ts';
import type { NetworkPolicy, SandboxLimits } from '../../kernel/sandbox/index.ts';
import { pingHealth, type SessionPlan } from '../../kernel/sessions/index.ts';
import { lifecycleOf } from './harnesses/check-definition.ts';
import type { VersionOfHarness } from './harnesses/harness.ts';
import { HARNESS_SESSIONS } from './session-kind.ts';

export interface HarnessPlanDeps {
  limits: SandboxLimits;
  network: NetworkPolicy;
  region: string;
  /** What an AWS SDK needs in its environment to call this platform as the role. */
  roleEnvironment(role: SandboxRole): Record<string, string>;
  /** Most sandboxes of one version that stand ready. */
  pooled: number;
}

const PORT = 8080;

/** How a session of this version is made and watched. `digest` is the image's; undefined where one that lives is only watched. */
export function harnessPlan(version: VersionOfHarness, digest: string | undefined, deps: HarnessPlanDeps): SessionPlan {
  const { definition, harness } = version;
  return {
    kind: HARNESS_SESSIONS,
    version: String(version.version),
    image: digest,
    lifecycle: lifecycleOf(definition),
    port: PORT,
    health: pingHealth,
    pool: { resourceArn: harness.arn, max: deps.pooled },
    async sandbox(id) {
      if (digest === undefined) throw new Error('a session that is only watched is never started');
      const role = { sandboxId: id, roleArn: definition.executionRoleArn, sourceArn: harness.arn, given: [] };
      return {
        id,
        image: { digest, common: true },
        env: {
          ...{ AWS_REGION: deps.region, AWS_DEFAULT_REGION: deps.region },
          ...deps.roleEnvironment(role),
          ...definition.environmentVariables,
        },
        volumes: [],
        network: { ...deps.network, sandboxEndpoint: true },
        limits: deps.limits,
        labels: { kind: HARNESS_SESSIONS, harness: harness.arn, version: String(version.version) },
      };
    },
  };
}
