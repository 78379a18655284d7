import type { control } from '@agentplatform/contract';
import { number, object, stored, text, word } from '../../../kernel/stored-shape.ts';

/** In the table `resources`. */
export const ENGINE_KIND = 'policy-engine';

/** What is kept of a policy engine beside its names. */
export interface EngineData {
  description?: string | undefined;
  status: control.PolicyEngineStatus;
  /** Counts the changes of its temporal policies: a policy session that began before the last of them is over. */
  sessionEpoch: number;
}

export const storedEngine = stored<EngineData>(
  object({ status: word<control.PolicyEngineStatus>(), sessionEpoch: number }, { description: text }),
);

/** A set of policies that gateways are attached to (spec: Policy). */
export interface Engine extends EngineData {
  arn: string;
  accountId: string;
  id: string;
  name: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
  updatedAt: number;
}

/** The ARN of the engine that the ARN of an engine, a policy or a generation names. */
export function engineArnOf(arn: string): string {
  return arn.replace(/\/polic(?:y|y-generation)\/[^/]*$/, '');
}
