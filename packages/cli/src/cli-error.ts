import type { ExitReason } from './exit-codes.ts';

/** A failure that the user reads: what went wrong, and in `remedy` what to do about it. */
export class CliError extends Error {
  readonly reason: ExitReason;
  readonly remedy: string | undefined;
  constructor(reason: ExitReason, message: string, remedy?: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'CliError';
    this.reason = reason;
    this.remedy = remedy;
  }
}
