/** A tool could not be called, for a reason that its caller may read. */
export class ToolError extends Error {
  override readonly name = 'ToolError';
}
