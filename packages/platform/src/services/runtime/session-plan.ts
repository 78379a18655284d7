import type { Images } from '../../kernel/images/images.ts';
import type { NetworkPolicy, SandboxLimits } from '../../kernel/sandbox/sandbox.ts';
import { pingHealth } from '../../kernel/sessions/health.ts';
import type { SessionPlan } from '../../kernel/sessions/sessions.ts';
import { protocolRoutes } from './protocols.ts';
import type { RuntimeVersion } from './runtime.ts';

export interface SessionPlanDeps {
  images: Images;
  limits: SandboxLimits;
  network: NetworkPolicy;
  region: string;
  /** Most sandboxes of one version that stand ready. */
  pooled: number;
}

/** How a session of this version is made and watched. */
export function sessionPlan(version: RuntimeVersion, deps: SessionPlanDeps): SessionPlan {
  const { definition, imageDigest, runtimeArn } = version;
  return {
    version: String(version.version),
    image: imageDigest,
    lifecycle: version.lifecycle,
    port: protocolRoutes[version.protocol].port,
    health: pingHealth,
    pool: { resourceArn: runtimeArn, max: deps.pooled },
    async sandbox(id, signal) {
      if (!imageDigest) throw new Error(`version ${version.version} of ${runtimeArn} is READY without an image`);
      return {
        id,
        image: await deps.images.prepare(imageDigest, signal),
        env: {
          AWS_REGION: deps.region,
          AWS_DEFAULT_REGION: deps.region,
          // Vendor SDK servers listen on loopback alone unless told that they run in a container.
          DOCKER_CONTAINER: '1',
          ...definition.environmentVariables,
        },
        mounts: [],
        network: deps.network,
        limits: deps.limits,
        labels: { kind: 'runtime', runtime: runtimeArn, version: String(version.version) },
      };
    },
  };
}
