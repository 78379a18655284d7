import { errors } from '@agentplatform/contract';
import { DuplicateResourceError } from './resource-errors.ts';

/**
 * What the caller is told who would make a second resource of a name, such as `An agent runtime`, in an account: ConflictException. Any other error
 * goes on as it is.
 */
export function nameTaken(error: unknown, what: string, remedy: string): unknown {
  if (!(error instanceof DuplicateResourceError)) return error;
  return errors.conflict(`${what} named ${error.resourceName} already exists in this account.`, {
    remedy,
    cause: error,
  });
}
