import type { control } from '@agentplatform/contract';
import { fromResource, type Resource } from '../../../kernel/storage/index.ts';
import { list, object, stored, text, wire, word } from '../../../kernel/stored-shape.ts';
import { type PolicyText, policyText } from '../policies/policy.ts';

/** In the table `resources`; a generation's parent is its engine. */
export const GENERATION_KIND = 'policy-generation';

/** A policy that was made of a part of the sentence; without a text where none could be. */
export interface GeneratedAsset {
  id: string;
  policy?: PolicyText | undefined;
  /** The part of the sentence that it is about. */
  fragment: string;
  findings: control.Finding[];
}

/** What is kept of a generation beside its names. */
export interface GenerationData {
  /** ARN of the gateway that the policies are for. */
  gatewayArn: string;
  sentence: string;
  status: control.PolicyGenerationStatus;
  statusReasons: string[];
  assets: GeneratedAsset[];
}

export const storedGeneration = stored<GenerationData>(
  object({
    gatewayArn: text,
    sentence: text,
    status: word<control.PolicyGenerationStatus>(),
    statusReasons: list(text),
    assets: list(object({ id: text, fragment: text, findings: list(wire<control.Finding>()) }, { policy: policyText })),
  }),
);

/** Policies made of a sentence (spec: Policy). */
export interface Generation extends GenerationData {
  arn: string;
  engineArn: string;
  accountId: string;
  id: string;
  name: string;
  createdAt: number;
  updatedAt: number;
}

/** The generation that a row holds. */
export function generationFrom(resource: Resource<GenerationData>): Generation {
  return { ...fromResource(resource), engineArn: resource.parent };
}
