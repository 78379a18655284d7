import type { Client, RequestOptions, StandardSchemaV1 } from '@modelcontextprotocol/client';
import { BackendError } from '../../outbound/backend-error.ts';
import type { JsonObject, Problem } from '../../tools/index.ts';
import { isObject } from '../../tools/json-pointer.ts';
import type { MadeTools } from '../target-kind.ts';
import { longNames, readPrompts, readResources, readTemplates, readTools } from './read-offers.ts';

/** Limit of each kind; a model could not choose among more. */
const MOST_OFFERS = 5_000;
const MOST_PAGES = 200;

type ListMethod = 'tools/list' | 'prompts/list' | 'resources/list' | 'resources/templates/list';

/** The list is read piece by piece below: one bad tool costs no other. */
const anyResult: StandardSchemaV1<unknown, JsonObject> = {
  '~standard': {
    version: 1,
    vendor: 'agentplatform',
    validate: (value) => (isObject(value) ? { value } : { issues: [{ message: 'is not an object' }] }),
  },
};

/** Asks a server for all that it offers, of what it says that it has. Rejects where it does not tell its tools. */
export async function listOffers(client: Client, target: string, options: RequestOptions): Promise<MadeTools> {
  const { tools: hasTools, prompts: hasPrompts, resources: hasResources } = client.getServerCapabilities() ?? {};
  const problems: Problem[] = [];
  const all = async (method: ListMethod, member: string): Promise<unknown[]> => {
    const { items, problem } = await listAll(client, method, member, options);
    if (problem) problems.push(problem);
    return items;
  };
  const rest = (method: ListMethod, member: string): Promise<unknown[]> =>
    all(method, member).catch((error: unknown) => {
      if (options.signal?.aborted) throw error;
      problems.push({ severity: 'warning', message: `The server did not answer ${method}.` });
      return [];
    });
  const tools = readTools(hasTools ? await all('tools/list', 'tools') : [], target);
  const prompts = readPrompts(hasPrompts ? await rest('prompts/list', 'prompts') : [], target);
  const resources = readResources(hasResources ? await rest('resources/list', 'resources') : []);
  const templates = readTemplates(hasResources ? await rest('resources/templates/list', 'resourceTemplates') : []);
  if (!hasTools) problems.push({ severity: 'warning', message: 'The server says that it has no tools.' });
  return {
    tools: tools.offers,
    prompts: prompts.offers,
    resources: resources.offers,
    templates: templates.offers,
    problems: [
      ...problems,
      ...[tools, prompts, resources, templates].flatMap((read) => read.problems),
      ...longNames(tools.offers, target),
    ],
  };
}

/** All pages of a list, as far as a target may have them. */
async function listAll(
  client: Client,
  method: ListMethod,
  member: string,
  options: RequestOptions,
): Promise<{ items: unknown[]; problem?: Problem }> {
  const items: unknown[] = [];
  const cursors = new Set<string>();
  let cursor: string | undefined;
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const params = cursor === undefined ? {} : { cursor };
    const page = await client.request({ method, params }, anyResult, options);
    const listed = page[member];
    if (!Array.isArray(listed)) throw new BackendError(`The server's answer to ${method} has no list "${member}".`);
    items.push(...listed.slice(0, MOST_OFFERS + 1 - items.length));
    if (items.length > MOST_OFFERS)
      return { items: items.slice(0, MOST_OFFERS), problem: tooMany(method, `more than ${MOST_OFFERS} entries`) };
    const { nextCursor } = page;
    if (typeof nextCursor !== 'string') return { items };
    if (cursors.has(nextCursor)) return { items, problem: tooMany(method, 'pages that lead back to earlier ones') };
    cursors.add(nextCursor);
    cursor = nextCursor;
  }
  return { items, problem: tooMany(method, `more than ${MOST_PAGES} pages`) };
}

function tooMany(method: ListMethod, what: string): Problem {
  return { severity: 'error', message: `The server's ${method} has ${what}; the rest is left out.` };
}
