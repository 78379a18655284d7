import { errors, parseArn, resourceArn, ServiceError } from '@agentplatform/contract';
import type { Caller } from '../service.ts';

/** A name and ten random characters. Ids of other things look the same; whoever is given what is no memory is given nothing. */
const ID = /^[a-zA-Z][a-zA-Z0-9_-]{0,99}-[a-zA-Z0-9]{10}$/;
/** They travel in the credentials of every request. */
const MOST = 12;

/** What a version or a function of before this was asked for has: those that it names, without anybody's right. */
export function formerlyGiven(texts: readonly string[], beside: string): string[] {
  return namedMemories(texts, beside).slice(0, MOST);
}

/** ARNs of the memories beside what has that ARN, in its account, whose id or ARN is among these texts; each once. */
function namedMemories(texts: readonly string[], beside: string): string[] {
  const home = parseArn(beside);
  if (!home) return [];
  const prefix = resourceArn('memory', home, '*').slice(0, -1);
  const ids = texts.map((text) => (text.startsWith(prefix) ? text.slice(prefix.length) : text));
  return [...new Set(ids.filter((id) => ID.test(id)).map((id) => `${prefix}${id}`))];
}

/**
 * Those of the named memories that the caller, who deploys what will use them, may give it (`agentplatform:UseMemory`). The others stay a text among texts:
 * a role of the deployed one's own may allow it to use them. Throws ValidationException for more than can be given.
 */
export async function givenMemories(
  caller: Caller,
  { texts, region, field }: { texts: readonly string[]; region: string; field: string },
): Promise<string[]> {
  const named = namedMemories(texts, resourceArn('memory', { region, accountId: caller.accountId }, '*'));
  if (named.length > MOST) throw errors.invalidField(field, `names ${named.length} memories, and may name ${MOST}`);
  const given: string[] = [];
  for (const arn of named)
    if (await caller.require('agentplatform:UseMemory', arn).then(() => true, isRefusal)) given.push(arn);
  return given;
}

function isRefusal(error: unknown): false {
  if (error instanceof ServiceError && error.code === 'AccessDeniedException') return false;
  throw error;
}
