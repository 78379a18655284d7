import type { ToolHints } from '../tools/tool.ts';

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

/** What HTTP says of a method (RFC 9110, 9.2). Of any that is not safe nothing says that it destroys nothing. */
export function hintsOf(method: string): ToolHints {
  const readOnly = SAFE.has(method);
  return { readOnly, destructive: !readOnly, idempotent: readOnly || method === 'PUT' || method === 'DELETE' };
}
