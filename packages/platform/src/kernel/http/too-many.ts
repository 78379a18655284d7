import { errors, type OperationName, operations, type ServiceError } from '@agentplatform/contract';

export interface TooMany {
  /** After which it is worth trying again. */
  seconds: number;
  operation: OperationName | undefined;
  /** How the sentence on what to do begins. */
  remedy: string;
  /** What would have to be raised. */
  setting: string;
}

/** The refusal (429) of a caller who has used up his share: a ThrottledException where the operation declares it. */
export function tooMany(what: string, { seconds, operation, remedy, setting }: TooMany): ServiceError {
  const options = { remedy: `${remedy}, or raise ${setting}.`, retryAfterSeconds: seconds };
  const known = operation !== undefined && operations[operation].errors.includes('ThrottledException');
  return known ? errors.throttled(`${what}.`, options) : errors.throttling(`${what}.`, options);
}
