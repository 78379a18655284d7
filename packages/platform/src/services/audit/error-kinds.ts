import { type ErrorKind, ownErrors } from '@agentplatform/contract';

const client = (meaning: string, remedy: string): ErrorKind => ({
  ...{ status: 400, fault: 'client', origin: 'aws' },
  ...{ meaning, remedy },
});

/** Errors that CloudTrail has for `LookupEvents` (CloudTrail API reference). */
export const auditErrorKinds = {
  InvalidLookupAttributesException: client(
    'Events are looked up by an attribute that there is not, or by one without a value.',
    'Name one attribute of those that the message lists, and its value.',
  ),
  InvalidMaxResultsException: client('MaxResults is out of range.', 'Send a whole number from 1 to 50.'),
  InvalidNextTokenException: client(
    'NextToken is not one that an answer to the same question gave.',
    'Begin again without a token, or send the same attribute and times with it.',
  ),
  InvalidTimeRangeException: client(
    'StartTime and EndTime are no moments in this order.',
    'Send moments in seconds since the epoch, the earlier one as StartTime.',
  ),
} as const satisfies Record<string, ErrorKind>;

export const lookupErrors = ownErrors(auditErrorKinds);
