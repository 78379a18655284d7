import { errors, type ServiceError } from '@agentplatform/contract';
import type { ImageError } from './images.ts';

/** An image's problem as the wire's error, at the field of the call that it is about. */
export function imageProblem(error: ImageError, field: string): ServiceError {
  switch (error.reason) {
    case 'too-large':
    case 'quota':
      return errors.quota(`${field}: ${error.message}`, { cause: error });
    case 'unauthorized':
      return errors.accessDenied(`${field}: ${error.message}`, { cause: error });
    case 'storage':
      return errors.unavailable(error.message, { cause: error });
    default:
      return errors.validation(`${field}: ${error.message}`, {
        fieldList: [{ name: field, message: error.message }],
        cause: error,
      });
  }
}
