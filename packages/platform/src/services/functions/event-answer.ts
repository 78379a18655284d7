import type { DocumentValue } from '@agentplatform/contract';
import type { FunctionAnswer } from './function-caller.ts';
import type { EventResult } from './function-events.ts';

/** A result as other services read it; one that is no JSON is a failure of the function. */
export function answerOf({ payload, failed }: EventResult): FunctionAnswer {
  let value: DocumentValue;
  try {
    value = JSON.parse(payload.toString('utf8'));
  } catch {
    return { outcome: 'failed', errorType: 'Runtime.InvalidResponse', errorMessage: 'The answer is no JSON.' };
  }
  if (!failed) return { outcome: 'returned', value };
  const said = typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
  const textOf = (member: unknown, otherwise: string): string => (typeof member === 'string' ? member : otherwise);
  return {
    outcome: 'failed',
    errorType: textOf(said.errorType, 'Error'),
    errorMessage: textOf(said.errorMessage, 'The function failed and does not say why.'),
  };
}
