import { errors, type ServiceError } from '@agentplatform/contract';
import { SessionQuotaError, StartFailure, type StartProblem } from '../../kernel/sessions/index.ts';

/** Of the kind of session (`SessionKind`). */
export const RUNTIME_SESSIONS = 'runtime';

/** Why a session of an agent could not be had: what is wrong with its image or its code is its owner's to mend. */
export function explainStart(problem: StartProblem): ServiceError {
  const { message } = problem;
  if (problem instanceof SessionQuotaError)
    return errors.quota(`${message}.`, {
      remedy: 'Stop sessions that are not needed (StopRuntimeSession), or raise quotas.sessionsPerAccount.',
      cause: problem,
    });
  if (problem instanceof StartFailure || problem.reason === 'command')
    return errors.runtimeClient(message, { cause: problem });
  return errors.internal(`The sandbox could not be made: ${message}`, { cause: problem });
}
