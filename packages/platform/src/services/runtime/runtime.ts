import { type control, resourceArn } from '@agentplatform/contract';

/** Wire status of a runtime, a version and an endpoint alike. */
export type ResourceStatus = control.AgentRuntimeStatus;

/** What a container speaks, and so which port and paths it serves (COMPATIBILITY 1). */
export type Protocol = 'HTTP' | 'MCP' | 'A2A' | 'AGUI';

/** One agent runtime: a name that versions and endpoints hang on. */
export interface Runtime {
  arn: string;
  id: string;
  accountId: string;
  name: string;
  latestVersion: number;
  createdAt: number;
  updatedAt: number;
  /** What is shown of the runtime is its newest version's, but for a deletion under way. */
  deleting: boolean;
}

/** What a create or update call fixed; it never changes afterwards, save for status and digest. */
export interface RuntimeVersion {
  runtimeArn: string;
  version: number;
  status: ResourceStatus;
  failureReason: string | undefined;
  createdAt: number;
  updatedAt: number;
  /** sha256:… of the image that its sandboxes are made from; there once it is READY. */
  imageDigest: string | undefined;
  lifecycle: { idleSeconds: number; maxLifetimeSeconds: number };
  protocol: Protocol;
  /** PEM of the authority of the identity provider's certificates, as it was when the version was made; absent without one. */
  certificateAuthority?: string | undefined;
  /** ARNs of the memories that whoever made the version gave it (`kernel/auth/given-resources.ts`); absent in one of before November 2026. */
  given?: readonly string[];
  /** The call's own members, given back as they came. */
  definition: RuntimeDefinition;
}

export type RuntimeDefinition = Pick<
  control.CreateAgentRuntimeRequest,
  | 'agentRuntimeArtifact'
  | 'roleArn'
  | 'networkConfiguration'
  | 'description'
  | 'authorizerConfiguration'
  | 'requestHeaderConfiguration'
  | 'protocolConfiguration'
  | 'lifecycleConfiguration'
  | 'environmentVariables'
  | 'filesystemConfigurations'
  | 'resourceConfigurations'
  | 'hooksConfiguration'
  | 'allowedPorts'
>;

/** A name under which one version of a runtime is invoked. `DEFAULT` always exists and follows the newest ready version. */
export interface RuntimeEndpoint {
  arn: string;
  id: string;
  runtimeArn: string;
  name: string;
  description: string | undefined;
  /** Version that calls reach now; undefined until one was ready. */
  liveVersion: number | undefined;
  /** Version that it is moving to, the same as `liveVersion` when it has arrived. */
  targetVersion: number;
  status: ResourceStatus;
  failureReason: string | undefined;
  createdAt: number;
  updatedAt: number;
}

export const DEFAULT_ENDPOINT = 'DEFAULT';

/** The ARN of an agent runtime; `*` as id stands for all of an account. Throws RangeError for an id with `/` or blanks. */
export function runtimeArn(home: { region: string; accountId: string }, id: string): string {
  return resourceArn('runtime', home, id);
}

export function endpointArn(runtimeArn: string, name: string): string {
  return `${runtimeArn}/runtime-endpoint/${name}`;
}
