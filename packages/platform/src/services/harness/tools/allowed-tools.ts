import { isLike } from '../../../kernel/is-like.ts';

/** A tool as `allowedTools` speaks of it. */
export interface NamedTool {
  /** `builtin`, the name that the harness gives a server of tools, or undefined for a tool that is of none (an inline function). */
  server: string | undefined;
  /** Its own name, without that of its server. */
  name: string;
}

/** The server of the tools that the sandbox itself has. */
export const BUILT_IN = 'builtin';

/**
 * Whether a list of patterns allows a tool: `*`, a name or a glob of names (of built-in tools and of those without a server), `@server` and
 * `@server/tool`, where both may be globs. Without a list every tool is allowed.
 */
export function allows(patterns: readonly string[] | undefined, tool: NamedTool): boolean {
  return patterns === undefined || patterns.some((pattern) => matches(pattern, tool));
}

function matches(pattern: string, { server, name }: NamedTool): boolean {
  if (pattern === '*') return true;
  if (!pattern.startsWith('@')) return (server === undefined || server === BUILT_IN) && isLike(pattern, name);
  const [wanted = '', tool = '*'] = pattern.slice(1).split('/', 2);
  return server !== undefined && isLike(wanted, server) && isLike(tool, name);
}
