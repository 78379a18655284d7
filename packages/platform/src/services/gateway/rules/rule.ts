import type { control } from '@agentplatform/contract';
import { fromResource, type Resource } from '../../../kernel/storage/index.ts';
import { list, number, object, stored, text, wire } from '../../../kernel/stored-shape.ts';

/** In the table `resources`; a rule's parent is its gateway. */
export const RULE_KIND = 'gateway-rule';

/** What is kept of a rule beside its names. */
export interface RuleData {
  description?: string | undefined;
  /** The lower is looked at first; unique in a gateway. */
  priority: number;
  /** All of them must be met; none is met by every request. */
  conditions: readonly control.Condition[];
  actions: readonly control.Action[];
}

export const storedRule = stored<RuleData>(
  object(
    { priority: number, conditions: list(wire<control.Condition>()), actions: list(wire<control.Action>()) },
    { description: text },
  ),
);

/** Assigns requests of a gateway to a target (spec: Gateway). */
export interface Rule extends RuleData {
  gatewayArn: string;
  id: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
  updatedAt: number;
}

/** The rule that a row holds. */
export function ruleFrom(resource: Resource<RuleData>): Rule {
  return { ...fromResource(resource), gatewayArn: resource.parent };
}

/** The ARN by which a row is found; the wire has none. */
export function ruleArn(gatewayArn: string, id: string): string {
  return `${gatewayArn}/rule/${id}`;
}
