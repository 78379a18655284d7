import { createHash } from 'node:crypto';
import type { Executor } from '../../../kernel/storage/index.ts';
import { compareFirstTools, forgetFirstTools, readFirstTools } from '../tables.ts';
import type { Problem, Tool } from '../tools/index.ts';

/** Tools of different names that a target may have had since its owner's last update. */
const MOST_FIRST_TOOLS = 20_000;

/**
 * Compares the tools of a target with those that its owner accepted, and returns the changed ones for the owner to check (rug pull). An update by the owner accepts all
 * tools. A synchronization accepts only tools with new names. Undefined if the server has had too many tools. Then none is accepted.
 */
export async function compareTools(
  tx: Executor,
  targetArn: string,
  { tools, byOwner }: { tools: readonly Tool[]; byOwner: boolean },
): Promise<Problem[] | undefined> {
  if (byOwner) await forgetFirstTools(tx, targetArn);
  const { count } = await readFirstTools(tx, targetArn);
  if (count + tools.length > MOST_FIRST_TOOLS) return undefined;
  await compareFirstTools(tx, targetArn, new Map(tools.map((tool) => [tool.name, digestOf(tool)])));
  return changedTools(tx, targetArn);
}

/** The tools that changed, as the owner is told of them. */
export async function changedTools(tx: Executor, targetArn: string): Promise<Problem[]> {
  const { changed } = await readFirstTools(tx, targetArn);
  return changed.map((name) => ({ severity: 'warning', where: name, message: CHANGED }));
}

export const EVER_NEW: Problem = {
  severity: 'error',
  message: `The server had more than ${MOST_FIRST_TOOLS} tools of different names since the last update of the target; update it to accept more.`,
};

const CHANGED =
  'This tool has another description or schema than when it was added. Read it again; an update of the target accepts it.';

/** Of all that a model or a person goes by. Members are sorted, as the database sorts them. */
function digestOf(tool: Tool): string {
  return createHash('sha256').update(JSON.stringify(tool, sorted)).digest('base64');
}

function sorted(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
