import { errors, type ServiceError } from '@agentplatform/contract';

/**
 * Why a provider gave no token. `refused`: it answered with an error of OAuth. `nonsense`: its answer is not one of OAuth. `unreachable`: it did not answer, or it
 * answered that it is not available now.
 */
export type ProviderFailure = 'refused' | 'nonsense' | 'unreachable';

/** A provider gave no token. The message may go to the caller: it contains nothing that was sent to the provider. */
export class ProviderError extends Error {
  readonly kind: ProviderFailure;
  /** The error code of OAuth (RFC 6749, section 5.2), where it was refused. */
  readonly code: string | undefined;

  constructor(kind: ProviderFailure, message: string, options?: ErrorOptions & { code?: string | undefined }) {
    super(message, options);
    this.name = 'ProviderError';
    this.kind = kind;
    this.code = options?.code;
  }
}

/** The wire's error for a `ProviderError`. Other errors are returned unchanged. */
export function toWireError(error: unknown): ServiceError | unknown {
  if (!(error instanceof ProviderError)) return error;
  const { kind, message } = error;
  if (kind === 'unreachable')
    return errors.unavailable(message, {
      remedy: 'Repeat the request in a moment.',
      retryAfterSeconds: 2,
      cause: error,
    });
  return errors.validation(message, { reason: 'FieldValidationFailed', cause: error });
}
