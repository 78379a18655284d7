import type { control } from '@agentplatform/contract';
import { fromResource, type Resource } from '../../../kernel/storage/index.ts';
import { list, number, object, stored, text, wire, word } from '../../../kernel/stored-shape.ts';
import { type ListingConsent, storedConsent } from '../outbound/listing-consents.ts';

/** In the table `resources`; a target's parent is its gateway. */
export const TARGET_KIND = 'gateway-target';

/** The members of a create or update call that are kept, and given back as they came. */
export type TargetDefinition = Pick<
  control.CreateGatewayTargetRequest,
  'description' | 'targetConfiguration' | 'metadataConfiguration' | 'certificateConfigurations'
> & {
  credentialProviderConfigurations: control.CredentialProviderConfiguration[];
  /** PEM of the authority of the target's certificates, as it was when it was named; no part of the wire. */
  certificateAuthority?: string | undefined;
  /** ARNs of the memories that whoever defined the target gave it for the gateway's role; absent where it names none, and in one of before November 2026. No part of the wire. */
  given?: readonly string[] | undefined;
};

/** What is kept of a target beside its names. */
export interface TargetData {
  /** What its tools were made of, and calls go by; absent until they were made once. */
  live?: TargetDefinition | undefined;
  /** What tools are being made of, or could not be made of. */
  wanted?: TargetDefinition | undefined;
  status: control.TargetStatus;
  statusReasons: string[];
  /** What its tools and whatever else it offers count for in its account's quota; absent while it offers nothing. */
  bytes?: number | undefined;
  /** Counts what was asked for: tools that were made of something older are thrown away. */
  revision: number;
  /** Milliseconds since the epoch. */
  synchronizedAt?: number | undefined;
  /** Present where a person consents to the listing of its tools. */
  consent?: ListingConsent | undefined;
}

const DEFINITION = wire<TargetDefinition>();

export const storedTarget = stored<TargetData>(
  object(
    { status: word<control.TargetStatus>(), statusReasons: list(text), revision: number },
    { live: DEFINITION, wanted: DEFINITION, bytes: number, synchronizedAt: number, consent: storedConsent },
  ),
);

/** One API behind a gateway, whose operations are tools (spec: Target). */
export interface Target extends TargetData {
  arn: string;
  gatewayArn: string;
  accountId: string;
  id: string;
  /** Before the names of its tools. */
  name: string;
  createdAt: number;
  updatedAt: number;
}

/** While a person has to consent, before its tools can be made. */
const PENDING: readonly control.TargetStatus[] = [
  'CREATE_PENDING_AUTH',
  'UPDATE_PENDING_AUTH',
  'SYNCHRONIZE_PENDING_AUTH',
];

/** While a job works on its tools or waits for that consent. */
export const MAKING: readonly control.TargetStatus[] = ['CREATING', 'UPDATING', 'SYNCHRONIZING', ...PENDING];

export function awaitsConsent({ status }: Pick<TargetData, 'status'>): boolean {
  return PENDING.includes(status);
}

/** A target that can be called. */
export type LiveTarget = Target & { live: TargetDefinition };

export function isLive(target: Target): target is LiveTarget {
  return target.live !== undefined && target.status !== 'DELETING';
}

/** What callers are shown of it: what they have asked for last. */
export function definitionOf({ live, wanted }: TargetData): TargetDefinition {
  const shown = wanted ?? live;
  if (!shown) throw new Error('a target without a definition');
  return shown;
}

/** The ARN of the gateway that the ARN of a target, a rate limit or a rule names. */
export function gatewayArnOf(arn: string): string {
  return arn.replace(/\/(?:(?:target|rate-limit|rule)\/[^/]*|guard-rails)$/, '');
}

/** The target that a row holds. */
export function targetFrom(resource: Resource<TargetData>): Target {
  return { ...fromResource(resource), gatewayArn: resource.parent };
}
