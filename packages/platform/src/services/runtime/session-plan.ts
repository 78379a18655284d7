import type { SandboxRole } from '../../kernel/auth/iam/sandbox-credentials.ts';
import type { NetworkPolicy, SandboxLimits, SandboxProvider } from '../../kernel/sandbox/sandbox.ts';
import type { SessionPlan } from '../../kernel/sessions/sessions.ts';
import { StartFailure } from '../../kernel/sessions/start-failure.ts';
import type { GivenSecrets } from '../identity/index.ts';
import { openPortsOf, reservedMemoryOf } from './definition.ts';
import { type EgressDeps, openEgress } from './egress.ts';
import { type AgentEnvironment, environmentOf } from './environment.ts';
import type { FileSystems } from './file-systems.ts';
import { routeOf } from './protocols.ts';
import type { RuntimeVersion } from './runtime.ts';
import { warmUpOf } from './warm-up.ts';

export interface SessionPlanDeps {
  provider: Pick<SandboxProvider, 'stage'>;
  limits: SandboxLimits;
  network: NetworkPolicy;
  region: string;
  fileSystems: FileSystems;
  /** Where callers reach this platform; unknown before it listens. */
  endpoint(): string | undefined;
  /** What an AWS SDK needs in its environment to call this platform as the role. */
  roleEnvironment(role: SandboxRole): Record<string, string>;
  /** What the runtime is given of these secrets, as it is now. */
  secrets: {
    give(names: readonly string[]): Promise<GivenSecrets>;
    revision(names: readonly string[]): Promise<string>;
  };
  egress: EgressDeps;
  /** Most sandboxes of one version that stand ready. */
  pooled: number;
}

/** How a session of this version is made and watched. */
export function sessionPlan(version: RuntimeVersion, deps: SessionPlanDeps): SessionPlan {
  const { definition, imageDigest, runtimeArn } = version;
  const { port, health } = routeOf(version);
  const warmUp = warmUpOf(version);
  const volumes = deps.fileSystems.sessionVolumes(definition);
  // Who brings keys of his own means another place by them than this platform.
  const environment = environmentOf(definition);
  const ownKeys = environment.plain.AWS_ACCESS_KEY_ID !== undefined;
  const secretNames = [...new Set(Object.values(environment.secrets))];
  return {
    kind: 'runtime',
    version: String(version.version),
    image: imageDigest,
    lifecycle: version.lifecycle,
    port,
    openPorts: openPortsOf(definition),
    health,
    pool: {
      resourceArn: runtimeArn,
      max: deps.pooled,
      ...(secretNames.length > 0 && {
        current: async ({ labels }) => labels[SECRETS_LABEL] === (await deps.secrets.revision(secretNames)),
      }),
    },
    ...(warmUp ? { warmUp } : {}),
    ...(volumes ? { volumes } : {}),
    async sandbox(id, signal) {
      if (!imageDigest) throw new Error(`version ${version.version} of ${runtimeArn} is READY without an image`);
      const image = { digest: imageDigest };
      await deps.provider.stage(image, signal);
      const secrets = await secretsOf(environment, deps);
      return {
        id,
        image,
        env: {
          AWS_REGION: deps.region,
          AWS_DEFAULT_REGION: deps.region,
          // Vendor SDK servers listen on loopback alone unless told that they run in a container.
          DOCKER_CONTAINER: '1',
          ...(version.protocol === 'A2A' ? cardEnvironment(deps.endpoint(), runtimeArn) : {}),
          ...(ownKeys
            ? {}
            : deps.roleEnvironment({ sandboxId: id, roleArn: definition.roleArn, sourceArn: runtimeArn })),
          ...environment.plain,
        },
        ...(secrets && { secretEnv: secrets.env }),
        volumes: deps.fileSystems.volumes(definition),
        network: { ...(await openEgress(deps.network, environment.endpoints, deps.egress)), door: !ownKeys },
        limits: { ...deps.limits, reservedMemoryBytes: reservedMemoryOf(definition) },
        labels: {
          kind: 'runtime',
          runtime: runtimeArn,
          version: String(version.version),
          ...(secrets && { [SECRETS_LABEL]: secrets.revision }),
        },
      };
    },
  };
}

/** The label of a sandbox that says how old the secrets are that it was made with. */
const SECRETS_LABEL = 'secrets';

/** The environment that is secret, undefined without any. Rejects with `StartFailure` when there is no such secret. */
async function secretsOf(
  { secrets }: AgentEnvironment,
  deps: Pick<SessionPlanDeps, 'secrets'>,
): Promise<{ env: Record<string, string>; revision: string } | undefined> {
  const variables = Object.entries(secrets);
  if (variables.length === 0) return undefined;
  const { values, missing, revision } = await deps.secrets.give([...new Set(Object.values(secrets))]);
  if (missing.length > 0)
    throw new StartFailure(
      `The agent is given secrets that are not set: ${missing.join(', ')}. Set each with: agentcore secret set ${missing[0]}`,
    );
  return {
    env: Object.fromEntries(variables.map(([variable, name]) => [variable, values.get(name)?.reveal() ?? ''])),
    revision,
  };
}

/** Where an agent's card says that it is reached, by the name that the vendor's SDKs know; not at its own port, which only the platform reaches. */
function cardEnvironment(endpoint: string | undefined, runtimeArn: string): Record<string, string> {
  if (endpoint === undefined) return {};
  return { AGENTCORE_RUNTIME_URL: `${endpoint}/runtimes/${encodeURIComponent(runtimeArn)}/invocations/` };
}
