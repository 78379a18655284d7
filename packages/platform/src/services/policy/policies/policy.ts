import type { control } from '@agentplatform/contract';
import { fromResource, type Resource } from '../../../kernel/storage/index.ts';
import { list, number, object, oneOf, stored, text, word } from '../../../kernel/stored-shape.ts';

/** In the table `resources`; a policy's parent is its engine. */
export const POLICY_KIND = 'policy';

/** The text of a policy. `cedar`: without `when temporal` and `when guardrails`. */
export interface PolicyText {
  language: 'cedar' | 'dogwood';
  text: string;
}

/** What is kept of a policy beside its names. */
export interface PolicyData {
  description?: string | undefined;
  /** What decides; absent until it was checked once. */
  live?: PolicyText | undefined;
  /** What is being checked, or was refused. */
  wanted?: PolicyText | undefined;
  enforcementMode: control.EnforcementMode;
  validationMode: control.PolicyValidationMode;
  status: control.PolicyStatus;
  statusReasons: string[];
  /** Counts the changes. The result of a check of an older revision is ignored. */
  revision: number;
}

export const policyText = object({ language: oneOf('cedar', 'dogwood'), text });

export const storedPolicy = stored<PolicyData>(
  object(
    {
      enforcementMode: word<control.EnforcementMode>(),
      validationMode: word<control.PolicyValidationMode>(),
      status: word<control.PolicyStatus>(),
      statusReasons: list(text),
      revision: number,
    },
    { description: text, live: policyText, wanted: policyText },
  ),
);

/** One rule of an engine (spec: Policy). */
export interface Policy extends PolicyData {
  arn: string;
  engineArn: string;
  accountId: string;
  id: string;
  name: string;
  createdAt: number;
  updatedAt: number;
}

/** What callers are shown: what they have asked for last. */
export function shownText({ live, wanted }: PolicyData): PolicyText {
  const shown = wanted ?? live;
  if (!shown) throw new Error('a policy without a text');
  return shown;
}

/** The policy that a row holds. */
export function policyFrom(resource: Resource<PolicyData>): Policy {
  return { ...fromResource(resource), engineArn: resource.parent };
}

/** As the wire has it. */
export function definitionOf({ language, text: statement }: PolicyText): control.PolicyDefinition {
  return language === 'cedar' ? { cedar: { statement } } : { policy: { statement } };
}
