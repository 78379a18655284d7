import { type control, resourceArn } from '@agentplatform/contract';

/** In the table `resources`. */
export const HARNESS_KIND = 'harness';
export const HARNESS_VERSION_KIND = 'harness-version';
export const HARNESS_ENDPOINT_KIND = 'harness-endpoint';

/** Always there; it follows the newest version that is READY. */
export const DEFAULT_ENDPOINT = 'DEFAULT';

/** What is asked where a harness names no model. */
export const DEFAULT_MODEL: control.HarnessModelConfiguration = {
  bedrockModelConfig: { modelId: 'global.anthropic.claude-sonnet-4-6' },
};
/** Messages that the model sees at most, where a harness says nothing of truncation. */
export const DEFAULT_WINDOW = 40;
/** Calls of the model in one turn, and seconds that a turn takes at most, where a harness says nothing of it (developer guide). */
export const DEFAULT_ITERATIONS = 75;
export const DEFAULT_SECONDS = 3600;

/** One harness: a name that versions and endpoints hang on. */
export interface Harness {
  arn: string;
  id: string;
  accountId: string;
  name: string;
  latestVersion: number;
  /** Milliseconds since the epoch. */
  createdAt: number;
  updatedAt: number;
  deleting: boolean;
}

/** What a create or update call fixed; it never changes afterwards, save for its status. */
export interface HarnessVersion {
  harnessArn: string;
  version: number;
  status: control.HarnessStatus;
  failureReason: string | undefined;
  createdAt: number;
  updatedAt: number;
  definition: HarnessDefinition;
  /** PEM of the authority of the identity provider's certificates, as it was when the version was made. */
  certificateAuthority?: string | undefined;
  /** The memory that turns are kept in: its own, or the one that the definition names. Absent where memory is disabled. */
  memoryArn?: string | undefined;
}

export type HarnessDefinition = Omit<control.CreateHarnessRequest, 'harnessName' | 'clientToken' | 'tags'>;

/** A name under which one version of a harness is invoked. */
export interface HarnessEndpoint {
  arn: string;
  harnessArn: string;
  name: string;
  description: string | undefined;
  /** Version that invocations reach; undefined until one was ready. */
  liveVersion: number | undefined;
  targetVersion: number;
  status: control.HarnessEndpointStatus;
  failureReason: string | undefined;
  createdAt: number;
  updatedAt: number;
}

/** A harness with all that hangs on it. */
export interface HarnessFamily {
  harness: Harness;
  versions: HarnessVersion[];
  endpoints: HarnessEndpoint[];
}

/** A version of a harness, as callers see it. */
export type VersionOfHarness = HarnessVersion & { harness: Harness };

/** The ARN of a harness; `*` as id stands for all of an account. */
export function harnessArn(home: { region: string; accountId: string }, id: string): string {
  return resourceArn('harness', home, id);
}

export function endpointArn(harness: string, name: string): string {
  return `${harness}/harness-endpoint/${name}`;
}

/** The ARN of the harness that a version's or an endpoint's ARN is below, or the ARN itself. */
export function harnessArnOf(arn: string): string {
  return arn.split('/').slice(0, 2).join('/');
}
