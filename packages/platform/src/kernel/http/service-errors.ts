import { errors, ServiceError } from '@agentplatform/contract';
import { QueueFullError } from '../bounded-queue.ts';
import { LowDiskError } from '../disk-room.ts';
import { JournalFullError, JournalWriteError } from '../journal/index.ts';
import { HeldElsewhereError, NotHeldError, SessionQuotaError } from '../sessions/index.ts';
import {
  DatabaseBusyError,
  DatabaseError,
  DatabaseUnavailableError,
  IdempotencyConflictError,
  IdempotencyPendingError,
  InvalidCursorError,
  MissingResourceError,
  StorageFullError,
  TooManyResourcesError,
  TooManyTagsError,
  VersionConflictError,
} from '../storage/index.ts';
import { isDiskFull } from '../system-error.ts';

/** SQLSTATEs of a text that the database cannot hold: `\\u0000` in JSON, and a zero byte. */
const UNSTORABLE = new Set(['22P05', '22021']);

/** What Fastify refuses by itself before a handler is asked, such as a method that wants a type of content. */
function isUnreadable(error: unknown): error is Error {
  if (!(error instanceof Error) || !('statusCode' in error) || !('code' in error)) return false;
  return String(error.code).startsWith('FST_ERR_') && Number(error.statusCode) < 500;
}

/** The wire's error for whatever a handler threw, or undefined for what is a defect of ours. */
export function toServiceError(error: unknown): ServiceError | undefined {
  if (error instanceof ServiceError) return error;
  if (isUnreadable(error)) return errors.validation(error.message, { cause: error });
  if (error instanceof DatabaseUnavailableError) {
    return errors.unavailable('The database cannot be reached.', {
      remedy: 'Repeat the request; nothing needs to be restarted once the database is back.',
      retryAfterSeconds: 2,
      cause: error,
    });
  }
  if (error instanceof LowDiskError) {
    return errors.unavailable(error.message, {
      remedy: 'Free space, or lower disk.reserveBytes; nothing needs to be restarted.',
      retryAfterSeconds: 30,
      cause: error,
    });
  }
  if (error instanceof StorageFullError || isDiskFull(error)) {
    return errors.unavailable('The disk of the server is full.', {
      remedy: 'Free space; nothing needs to be restarted.',
      retryAfterSeconds: 30,
      cause: error,
    });
  }
  if (error instanceof JournalFullError || error instanceof JournalWriteError) {
    return errors.unavailable('The audit trail cannot be written, and nothing is changed unrecorded.', {
      remedy: 'Free space on the disk of the data directory, or mend it; nothing needs to be restarted.',
      retryAfterSeconds: 30,
      cause: error,
    });
  }
  if (error instanceof DatabaseError && UNSTORABLE.has(error.code ?? ''))
    return errors.validation('The request holds the character U+0000, which no text here can have.', { cause: error });
  if (error instanceof DatabaseBusyError)
    return errors.throttling('The database is busy.', { retryAfterSeconds: 1, cause: error });
  if (error instanceof NotHeldError)
    return errors.unavailable(
      'The server has lost its hold on sessions, because the database was out of reach for too long.',
      {
        remedy: 'Repeat the request; nothing needs to be restarted once the database is back.',
        retryAfterSeconds: 5,
        cause: error,
      },
    );
  if (error instanceof HeldElsewhereError)
    return errors.retryableConflict('The session has just moved to another server.', {
      retryAfterSeconds: 1,
      cause: error,
    });
  if (error instanceof IdempotencyConflictError)
    return errors.idempotencyMismatch('This clientToken was used before with other parameters.', {
      remedy: 'Use a new token.',
      cause: error,
    });
  if (error instanceof IdempotencyPendingError)
    return errors.conflict('A call with this clientToken is still at work.', {
      remedy: 'Repeat it in a moment.',
      cause: error,
    });
  if (error instanceof VersionConflictError)
    return errors.conflict('The resource was changed by another call at the same time.', {
      remedy: 'Read it again and repeat the call.',
      cause: error,
    });
  if (error instanceof MissingResourceError)
    return errors.resourceNotFound(`${error.arn} does not exist.`, { cause: error });
  if (error instanceof SessionQuotaError)
    return errors.quota(`${error.message}.`, {
      remedy: 'Stop sessions that are not needed, or raise quotas.sessionsPerAccount.',
      cause: error,
    });
  if (error instanceof QueueFullError)
    return errors.throttling(`Too many sessions are starting: ${error.message}.`, {
      remedy: 'Repeat the request in a moment, or raise sandbox.maxQueuedStarts.',
      retryAfterSeconds: 2,
      cause: error,
    });
  if (error instanceof TooManyResourcesError)
    return errors.quota(`${error.message}.`, { remedy: 'Delete some that are not used.', cause: error });
  if (error instanceof TooManyTagsError) return errors.quota(`${error.message}.`, { cause: error });
  if (error instanceof InvalidCursorError)
    return errors.invalidField('nextToken', 'is not a token that this operation gave', { cause: error });
  return undefined;
}

/** The same for an operation of the contract, whose model knows no 413: a body over the limit breaks a rule of the input. */
export function toOperationError(error: unknown): ServiceError | undefined {
  const known = toServiceError(error);
  if (known?.code !== 'RequestEntityTooLargeException') return known;
  return errors.validation(known.message, { reason: 'FieldValidationFailed', remedy: 'Send less.', cause: known });
}
