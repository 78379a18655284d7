/** Arguments that must not leave as they are; the message names the argument and is for the caller. */
export class RefusedArgumentError extends Error {
  override readonly name = 'RefusedArgumentError';
}
