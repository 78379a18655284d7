import { errors, type ServiceError } from '@agentplatform/contract';
import { SessionQuotaError, type StartProblem } from '../../kernel/sessions/index.ts';

/** Of the kind of session (`SessionKind`). */
export const HARNESS_SESSIONS = 'harness';

/** Why a session of a harness could not be had. The loop that runs in it is the platform's own, so nothing of it is the caller's to mend. */
export function explainStart(problem: StartProblem): ServiceError {
  const { message } = problem;
  if (problem instanceof SessionQuotaError)
    return errors.quota(`${message}.`, {
      remedy: 'Wait until idle sessions end, or raise quotas.sessionsPerAccount.',
      cause: problem,
    });
  return errors.internal(`The session could not be started: ${message}`, { cause: problem });
}
