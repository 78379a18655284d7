import { PROBLEM_CATALOGUE, type ProblemCode } from './problem-catalogue.ts';

/** One thing that is wrong with a project: where it is, what it is, and the way out. */
export interface Problem {
  readonly code: ProblemCode;
  readonly severity: 'error' | 'warning';
  /** Path relative to the project, with forward slashes; empty when no file is at fault. */
  readonly file: string;
  /** 1-based. */
  readonly line?: number | undefined;
  /** 1-based. */
  readonly column?: number | undefined;
  readonly message: string;
  readonly remedy: string;
  /** The lines around the fault, ready to print. */
  readonly frame?: string | undefined;
}

export interface ProblemDetails {
  readonly file?: string | undefined;
  readonly line?: number | undefined;
  readonly column?: number | undefined;
  readonly message: string;
  readonly remedy?: string | undefined;
  readonly frame?: string | undefined;
}

/** Make a problem; severity and the way out come from the catalogue unless `details` gives a better remedy. */
export function problem(code: ProblemCode, details: ProblemDetails): Problem {
  const entry = PROBLEM_CATALOGUE[code];
  return {
    code,
    severity: entry.severity,
    file: details.file ?? '',
    line: details.line,
    column: details.column,
    message: details.message,
    remedy: details.remedy ?? entry.remedy,
    frame: details.frame,
  };
}

/** Thrown where a problem must end the work at hand; `problem` is what the user is shown. */
export class ProblemError extends Error {
  readonly problem: Problem;

  constructor(code: ProblemCode, details: ProblemDetails) {
    super(details.message);
    this.name = 'ProblemError';
    this.problem = problem(code, details);
  }
}

/** The problem that an unknown error carries, or a `failed` problem that repeats its message. */
export function problemOf(error: unknown, file = ''): Problem {
  if (error instanceof ProblemError) return error.problem;
  const message = error instanceof Error ? error.message : String(error);
  return problem('failed', { file, message });
}
