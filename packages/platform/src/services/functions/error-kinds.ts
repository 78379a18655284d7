import type { ErrorKind } from '@agentplatform/contract';

/** The errors of AWS Lambda's API that functions answer (API reference of Lambda). */
const client = (status: number, meaning: string, remedy: string): ErrorKind => ({
  ...{ status, fault: 'client', origin: 'aws' },
  ...{ meaning, remedy },
});

export const functionErrors = {
  InvalidParameterValueException: client(
    400,
    'A parameter of a request about functions is wrong.',
    'Correct the request as the message says.',
  ),
  CodeStorageExceededException: client(
    400,
    'The account has as many functions, or as much of their code, as it may.',
    'Delete functions that are not needed, or raise the quota in the configuration.',
  ),
  ResourceConflictException: client(
    409,
    'The function exists already, or is being changed.',
    'Use another name, or wait until the change is done.',
  ),
  RequestTooLargeException: client(413, 'The event or the code is too large.', 'Send less.'),
  TooManyRequestsException: client(429, 'Too many events at once.', 'Repeat later, with growing pauses.'),
} as const satisfies Record<string, ErrorKind>;
