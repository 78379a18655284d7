/** Why an outgoing call was refused or ended; each code has one meaning and is stable. */
export type OutboundErrorCode =
  | 'BAD_URL'
  | 'SCHEME_REFUSED'
  | 'USERINFO_REFUSED'
  | 'PORT_REFUSED'
  | 'ADDRESS_REFUSED'
  | 'NAME_NOT_RESOLVED'
  | 'TOO_MANY_REDIRECTS'
  | 'REDIRECT_REFUSED'
  | 'BODY_NOT_REPLAYABLE'
  | 'BAD_HEADER'
  | 'TIMEOUT'
  | 'TOO_LARGE'
  | 'BAD_ENCODING'
  | 'BAD_JSON'
  | 'OVERLOADED'
  | 'CONNECTION_FAILED';

/** The one error of this room; the message is fit for the user who supplied the address. */
export class OutboundError extends Error {
  readonly code: OutboundErrorCode;

  constructor(code: OutboundErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'OutboundError';
    this.code = code;
  }
}

/** Finds the `OutboundError` in an error or among its causes (undici and `fetch` wrap what a connector throws). */
export function asOutboundError(error: unknown): OutboundError | undefined {
  let current = error;
  for (let depth = 0; depth < 8 && current instanceof Error; depth++) {
    if (current instanceof OutboundError) return current;
    current = current instanceof AggregateError && current.errors.length > 0 ? current.errors[0] : current.cause;
  }
  return undefined;
}
