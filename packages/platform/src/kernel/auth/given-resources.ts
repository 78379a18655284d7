import { errors, parseArn, parseResourceArn, resourceArn, ServiceError } from '@agentplatform/contract';
import type { Caller } from '../service.ts';

/** A name and ten random characters. Ids of other resources have this form too. Giving an id that is not a memory's gives nothing. */
const ID = /^[a-zA-Z][a-zA-Z0-9_-]{0,99}-[a-zA-Z0-9]{10}$/;
/** They travel in the credentials of every request. */
const MOST = 12;
const MOST_CHARS = 2_000;
/** Which right somebody needs to give what. */
const USE = { memories: 'agentplatform:UseMemory', providers: 'agentplatform:UseCredentialProvider' };

/** What a version, a function or a target of before this was asked for has: the memories that it names, without anybody's right. */
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

/** ARNs of the credential providers beside what has that ARN that are among these texts, each once. A provider's name alone is a word as any. */
function namedProviders(texts: readonly string[], beside: string): string[] {
  const prefix = beside.slice(0, beside.lastIndexOf(':') + 1);
  const named = texts.filter((text) => {
    const kind = text.startsWith(prefix) ? parseResourceArn(text)?.kind : undefined;
    return kind === 'api-key-credential-provider' || kind === 'oauth2-credential-provider';
  });
  return [...new Set(named)];
}

/**
 * Those of the named memories and credential providers that the caller, who deploys what will use them, may give it (`agentplatform:UseMemory`,
 * `agentplatform:UseCredentialProvider`). The others stay a text among texts: a role of the deployed one's own may allow it to use them. Throws
 * ValidationException for more than can be given.
 */
export async function givenResources(
  caller: Caller,
  { texts, region, field }: { texts: readonly string[]; region: string; field: string },
): Promise<string[]> {
  const beside = resourceArn('memory', { region, accountId: caller.accountId }, '*');
  const named = { memories: namedMemories(texts, beside), providers: namedProviders(texts, beside) };
  const all = [...named.memories, ...named.providers];
  if (all.length > MOST || all.join('').length > MOST_CHARS)
    throw errors.invalidField(
      field,
      `names ${named.memories.length} memories and ${named.providers.length} credential providers, and may name ${MOST} together, with ${MOST_CHARS} characters of ARNs`,
    );
  const given: string[] = [];
  for (const kind of ['memories', 'providers'] as const)
    for (const arn of named[kind])
      if (await caller.require(USE[kind], arn).then(() => true, isRefusal)) given.push(arn);
  return given;
}

function isRefusal(error: unknown): false {
  if (error instanceof ServiceError && error.code === 'AccessDeniedException') return false;
  throw error;
}
