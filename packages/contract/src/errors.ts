import { type ErrorCode, type ErrorKind, errorCatalogue, isErrorCode } from './error-catalogue.ts';
import type { DocumentValue } from './wire-types.ts';

/** One field that broke a rule; `name` is its path in the input, e.g. `networkConfiguration.subnets[2]`. */
export interface FieldProblem {
  name: string;
  message: string;
}

/** Why a request is invalid, in the wire's words. */
export type ValidationReason =
  | 'CannotParse'
  | 'FieldValidationFailed'
  | 'IdempotentParameterMismatchException'
  | 'EventInOtherSession'
  | 'ResourceConflict';

export interface ErrorOptions {
  /** What the caller can do, as a sentence; it is appended to the message on the wire, where clients show it. */
  remedy?: string;
  /** Further members of the error's shape, sent beside `message`. */
  members?: Record<string, DocumentValue>;
  /** Sent as `Retry-After`. */
  retryAfterSeconds?: number;
  /** Further headers of the answer by lower-case name, e.g. `www-authenticate`. */
  headers?: Record<string, string>;
  /** For the log only; never sent. */
  cause?: unknown;
}

/** An error that a client is to see: its code decides class and status on the other side. */
export class ServiceError extends Error {
  readonly code: string;
  readonly status: number;
  readonly remedy: string | undefined;
  readonly members: Readonly<Record<string, DocumentValue>>;
  readonly retryAfterSeconds: number | undefined;
  readonly headers: Readonly<Record<string, string>>;

  /** `kind`: a code of the catalogue, or a name of a service's own (`ownErrors`). */
  constructor(kind: ErrorCode | { code: string; status: number }, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    const { code, status } = typeof kind === 'string' ? { code: kind, status: errorCatalogue[kind].status } : kind;
    this.name = code;
    this.code = code;
    this.status = status;
    this.remedy = options.remedy;
    this.members = options.members ?? {};
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.headers = options.headers ?? {};
  }

  /** Message and remedy as one text, which is what a client's exception shows. */
  get wireMessage(): string {
    return this.remedy === undefined ? this.message : `${this.message} ${this.remedy}`;
  }
}

const factory =
  (code: ErrorCode) =>
  (message: string, options?: ErrorOptions): ServiceError =>
    new ServiceError(code, message, options);

/** What makes each of the errors that one service has beside the catalogue, by name; the service's manifest declares the same `kinds`. */
export function ownErrors<const Kinds extends Readonly<Record<string, ErrorKind>>>(
  kinds: Kinds,
): { readonly [Code in keyof Kinds & string]: ReturnType<typeof factory> } {
  const made = Object.entries(kinds).map(([code, { status }]) => [
    code,
    (message: string, options?: ErrorOptions) => new ServiceError({ code, status }, message, options),
  ]);
  return Object.fromEntries(made);
}

interface ValidationOptions extends ErrorOptions {
  reason?: ValidationReason;
  fieldList?: FieldProblem[];
}

function validation(message: string, options: ValidationOptions = {}): ServiceError {
  const { reason, fieldList, members, ...rest } = options;
  return new ServiceError('ValidationException', message, {
    ...rest,
    members: {
      reason: reason ?? (fieldList === undefined ? 'CannotParse' : 'FieldValidationFailed'),
      ...(fieldList === undefined ? {} : { fieldList: fieldList.map(({ name, message }) => ({ name, message })) }),
      ...members,
    },
  });
}

/** How every part of the platform makes an error of each kind: `throw errors.resourceNotFound('…')`. */
export const errors = {
  validation,
  /** A ValidationException about one field. */
  invalidField: (name: string, message: string, options?: ErrorOptions): ServiceError =>
    validation(`${name} ${message}.`, { ...options, fieldList: [{ name, message }] }),
  /** The same clientToken came with another input. */
  idempotencyMismatch: (message: string, options?: ErrorOptions): ServiceError =>
    validation(message, { ...options, reason: 'IdempotentParameterMismatchException' }),
  invalidInput: factory('InvalidInputException'),
  resourceLimit: factory('ResourceLimitExceededException'),
  unauthorized: factory('UnauthorizedException'),
  quota: factory('ServiceQuotaExceededException'),
  accessDenied: factory('AccessDeniedException'),
  resourceNotFound: factory('ResourceNotFoundException'),
  conflict: factory('ConflictException'),
  retryableConflict: factory('RetryableConflictException'),
  concurrentModification: factory('ConcurrentModificationException'),
  duplicateId: factory('DuplicateIdException'),
  encryptionFailure: factory('EncryptionFailure'),
  decryptionFailure: factory('DecryptionFailure'),
  runtimeClient: factory('RuntimeClientError'),
  model: factory('ModelErrorException'),
  throttling: factory('ThrottlingException'),
  throttled: factory('ThrottledException'),
  internal: factory('InternalServerException'),
  unavailable: factory('ServiceUnavailableException'),
  tooLarge: factory('RequestEntityTooLargeException'),
  unknownOperation: factory('UnknownOperationException'),
  incompleteSignature: factory('IncompleteSignatureException'),
  missingAuthentication: factory('MissingAuthenticationTokenException'),
  unrecognizedClient: factory('UnrecognizedClientException'),
  invalidSignature: factory('InvalidSignatureException'),
  expiredToken: factory('ExpiredTokenException'),
  notImplemented: (operation: string): ServiceError =>
    new ServiceError('NotImplementedException', `${operation} is part of the contract but is not built yet.`, {
      members: { operation },
    }),
} as const;

/**
 * The error that a server sent, as its client sees it. A code that this contract lacks, such as one of a service's own, keeps its name where the status came
 * with it, and else becomes InternalServerException.
 */
export function receivedError(
  code: string,
  body: unknown,
  { status, retryAfterSeconds }: { status?: number; retryAfterSeconds?: number } = {},
): ServiceError {
  const { message, ...members } = (typeof body === 'object' && body !== null ? body : {}) as Record<
    string,
    DocumentValue
  >;
  const said = typeof message === 'string' ? message : 'The server gave no message.';
  const options = { members, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
  if (isErrorCode(code)) return new ServiceError(code, said, options);
  if (status !== undefined && code !== '') return new ServiceError({ code, status }, said, options);
  return new ServiceError('InternalServerException', `${code}: ${said}`);
}
