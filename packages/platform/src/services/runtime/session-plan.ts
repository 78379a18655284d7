import { formerlyGiven, type SandboxRole } from '../../kernel/auth/index.ts';
import type { NetworkPolicy, SandboxLimits, SandboxProvider } from '../../kernel/sandbox/index.ts';
import type { SessionPlan } from '../../kernel/sessions/index.ts';
import { openPortsOf, reservedMemoryOf } from './definition.ts';
import { type EgressDeps, openEgress } from './egress.ts';
import { environmentOf } from './environment.ts';
import type { FileSystems } from './file-systems.ts';
import { routeOf } from './protocols.ts';
import type { RuntimeVersion } from './runtime.ts';
import { type RuntimeSecrets, SECRETS_LABEL, secretEnvironment } from './secret-environment.ts';
import { RUNTIME_SESSIONS } from './session-kind.ts';
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
  secrets: RuntimeSecrets;
  egress: EgressDeps;
  /** The same with the sandbox's own token in a file, so that the environment is one for all of a version. */
  roleFiles(role: SandboxRole): { env: Record<string, string>; files: { path: string; text: string }[] };
  /** Whether a sandbox has been given credentials. */
  hasCredentials(sandboxId: string): boolean;
  /** Whether sandboxes may be copies of a warm one here. */
  keepsSnapshots(): Promise<boolean>;
  /** Most sandboxes of one version that stand ready. */
  pooled: number;
}

/** How a session of this version is made and watched. */
export function sessionPlan(version: RuntimeVersion, deps: SessionPlanDeps): SessionPlan {
  const { definition, imageDigest, runtimeArn } = version;
  const { port, health } = routeOf(version);
  const warmUp = warmUpOf(version);
  const volumes = deps.fileSystems.sessionVolumes(definition);
  const environment = environmentOf(definition);
  // Who brings keys of his own means another place by them than this platform.
  const ownKeys = environment.plain.AWS_ACCESS_KEY_ID !== undefined;
  const secretNames = [...new Set(Object.values(environment.secrets))];
  // Storage is a session's or shared, and a copy's mounts would be another's. Its memory would have secrets and addresses as they were.
  const bound = (definition.filesystemConfigurations ?? []).length + secretNames.length + environment.endpoints.length;
  const copies = warmUp !== undefined && bound === 0;
  return {
    kind: RUNTIME_SESSIONS,
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
    ...(copies ? { snapshot: (sandboxId: string) => refusal(sandboxId, deps) } : {}),
    ...(volumes ? { volumes } : {}),
    async sandbox(id, signal) {
      if (!imageDigest) throw new Error(`version ${version.version} of ${runtimeArn} is READY without an image`);
      const image = { digest: imageDigest };
      await deps.provider.stage(image, signal);
      const secrets = await secretEnvironment(environment.secrets, deps.secrets);
      const given = version.given ?? formerlyGiven(Object.values(environment.plain), runtimeArn);
      const role = { sandboxId: id, roleArn: definition.roleArn, sourceArn: runtimeArn, given };
      const snapshot = copies && (await deps.keepsSnapshots());
      const own = ownKeys ? { env: {} } : snapshot ? deps.roleFiles(role) : { env: deps.roleEnvironment(role) };
      return {
        id,
        image,
        env: {
          AWS_REGION: deps.region,
          AWS_DEFAULT_REGION: deps.region,
          // Vendor SDK servers listen on loopback alone unless told that they run in a container.
          DOCKER_CONTAINER: '1',
          ...(version.protocol === 'A2A' ? cardEnvironment(deps.endpoint(), runtimeArn) : {}),
          ...own.env,
          ...environment.plain,
        },
        ...(secrets && { secretEnv: secrets.env }),
        ...(snapshot ? { snapshot } : {}),
        ...('files' in own ? { files: own.files } : {}),
        volumes: deps.fileSystems.volumes(definition),
        network: { ...(await openEgress(deps.network, environment.endpoints, deps.egress)), sandboxEndpoint: !ownKeys },
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

/** Credentials end with the sandbox that got them, and copies would remember them all the same. */
function refusal(sandboxId: string, { hasCredentials }: SessionPlanDeps): string | undefined {
  return hasCredentials(sandboxId) ? 'its warm-up has asked for credentials of its role' : undefined;
}

/** Where an agent's card says that it is reached, by the name that the vendor's SDKs know; not at its own port, which only the platform reaches. */
function cardEnvironment(endpoint: string | undefined, runtimeArn: string): Record<string, string> {
  if (endpoint === undefined) return {};
  return { AGENTCORE_RUNTIME_URL: `${endpoint}/runtimes/${encodeURIComponent(runtimeArn)}/invocations/` };
}
