/** Thrown when an account has as many live sessions as it may. */
export class SessionQuotaError extends Error {
  constructor(limit: number) {
    super(`The account has ${limit} live sessions, which is the limit`);
    this.name = 'SessionQuotaError';
  }
}
