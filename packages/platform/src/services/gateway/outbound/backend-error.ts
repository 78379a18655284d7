import { ToolError } from '../tool-error.ts';

/** The API behind a target is away, too slow, or answers what cannot be read. Its message may be read by who calls. */
export class BackendError extends ToolError {}
