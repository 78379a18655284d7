/** The caller's request cannot be served; `status` is the HTTP status and the message is what the caller reads. */
export class RequestError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.name = 'RequestError';
    this.status = status;
  }
}

/** The sentence of whatever was thrown. Never throws: an object without a prototype, say, has no text. */
export function messageOf(error: unknown): string {
  try {
    return String(error instanceof Error && error.message ? error.message : error);
  } catch {
    return 'The agent threw something that has no text.';
  }
}
