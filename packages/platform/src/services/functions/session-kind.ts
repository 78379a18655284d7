import { errors, type ServiceError } from '@agentplatform/contract';
import { SessionQuotaError, StartFailure, type StartProblem } from '../../kernel/sessions/index.ts';

/** Of the kind of session (`SessionKind`). */
export const FUNCTION_SESSIONS = 'function';

/** Why there is no sandbox for an event. Callers know of no sessions: too many are too many events. What the function itself did is a result. */
export function explainStart(problem: StartProblem): ServiceError | undefined {
  const { message } = problem;
  if (problem instanceof StartFailure) return undefined;
  if (problem instanceof SessionQuotaError)
    return errors.throttling(`${message}.`, { retryAfterSeconds: 2, cause: problem });
  return errors.internal(`The sandbox of the function could not be made: ${message}`, { cause: problem });
}
