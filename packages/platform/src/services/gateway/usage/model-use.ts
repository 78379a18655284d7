import type { Principal } from '../../../kernel/auth/index.ts';
import type { ModelUsage } from '../../../kernel/models/index.ts';
import { flag, number, object, type Shape, text } from '../../../kernel/stored-shape.ts';
import { roleOrUser } from '../rate-limits/index.ts';

/** One attempt to have a model of a target answer, as the journal carries it. */
export interface ModelUse {
  /** Milliseconds since the epoch. */
  at: number;
  gatewayArn: string;
  target: string;
  /** Its id at the provider. */
  model: string;
  caller: string;
  /** Gave no answer. */
  failed: boolean;
  /** The provider did not say what it took. */
  estimated: boolean;
  usage: Pick<ModelUsage, 'input' | 'output' | 'cacheRead' | 'cacheWrite'>;
}

export const storedModelUse: Shape<ModelUse> = object({
  ...{ at: number, gatewayArn: text, target: text, model: text, caller: text, failed: flag, estimated: flag },
  usage: object({ input: number, output: number, cacheRead: number, cacheWrite: number }),
});

/** The caller, as usage names him: the ARN of a user or a role, the subject of a token, or `anonymous`. */
export function callerOf(principal: Principal): string {
  if (principal.kind === 'oauth') return principal.subject;
  return roleOrUser(principal) ?? 'anonymous';
}
