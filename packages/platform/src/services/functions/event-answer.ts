import type { DocumentValue } from '@agentplatform/contract';
import { isDeeperThan } from '../../kernel/depth.ts';
import type { FunctionAnswer } from './function-caller.ts';
import type { EventResult } from './function-events.ts';

/** As arguments may be. */
const MOST_DEPTH = 256;

/** A result as other services read it; one that is no JSON, or too deep to be written again, is a failure of the function. */
export function answerOf({ payload, failed }: EventResult): FunctionAnswer {
  let value: DocumentValue;
  try {
    value = JSON.parse(payload.toString('utf8'));
  } catch {
    return invalid('The answer is not JSON.');
  }
  if (isDeeperThan(value, MOST_DEPTH)) return invalid(`The answer is nested deeper than ${MOST_DEPTH} levels.`);
  if (!failed) return { outcome: 'returned', value };
  const said = typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
  const textOf = (member: unknown, otherwise: string): string => (typeof member === 'string' ? member : otherwise);
  return {
    outcome: 'failed',
    errorType: textOf(said.errorType, 'Error'),
    errorMessage: textOf(said.errorMessage, 'The function failed and does not say why.'),
  };
}

function invalid(errorMessage: string): FunctionAnswer {
  return { outcome: 'failed', errorType: 'Runtime.InvalidResponse', errorMessage };
}
