import type { GatewayTool, OpenGateway } from '../gateway-tools.ts';

/** Limit of one gateway: time and memory of a search grow with the number of tools. */
const MOST_SEARCHED = 20_000;

/** The tools that a search looks at: all, or the first in the order of the list. */
export function searchedTools({ tools }: OpenGateway): readonly GatewayTool[] {
  return tools.length > MOST_SEARCHED ? tools.slice(0, MOST_SEARCHED) : tools;
}

/** What a search does not look at, for who reads what it found; undefined where it looks at all. */
export function unsearched({ tools: { length } }: OpenGateway): string | undefined {
  if (length <= MOST_SEARCHED) return undefined;
  return `The search looks at the first ${MOST_SEARCHED} of the ${length} tools of this gateway.`;
}
