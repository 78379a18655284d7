/**
 * The piece of the platform that an operation counts to: the first segment of its path, on both planes together
 * ("15 runtimes operations" are 11 of control and 4 of data).
 */
export function pieceOf(path: string): string {
  const segment = path.split('/')[1] ?? '';
  return aliases[segment] ?? segment;
}

/** Segments that name a view of another piece. */
const aliases: Record<string, string> = {
  'policy-engine-summaries': 'policy-engines',
  'registry-records': 'registries',
  'agent-insight-stores': 'agentinsights',
};
