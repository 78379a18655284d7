import { type ErrorKind, ownErrors } from '@agentplatform/contract';

/** Errors that CloudWatch Logs has for queries (API reference of CloudWatch Logs). */
export const observabilityErrorKinds = {
  MalformedQueryException: {
    ...{ status: 400, fault: 'client', origin: 'aws' },
    meaning: 'A query of CloudWatch Logs Insights has a command that is not known here.',
    remedy: 'Use fields, filter, sort and limit, as the guide about observability says.',
  },
} as const satisfies Record<string, ErrorKind>;

export const observabilityErrors = ownErrors(observabilityErrorKinds);
