import type { JsonSchema } from '../../../kernel/models/index.ts';

/** A policy as a model has drafted it; without a statement where it says that none can be written. */
export interface Drafted {
  fragment: string;
  statement: string | undefined;
}

/** What a model is to answer. */
export const ANSWER_SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    policies: {
      type: 'array',
      items: {
        type: 'object',
        properties: { fragment: { type: 'string' }, statement: { type: ['string', 'null'] } },
        required: ['fragment', 'statement'],
        additionalProperties: false,
      },
    },
  },
  required: ['policies'],
  additionalProperties: false,
};

/** As the wire has them. */
const LONGEST_STATEMENT = 10_000;
const LONGEST_FRAGMENT = 2_000;
const MOST_DRAFTS = 20;
/** Of a schema in a prompt; a gateway with more tools is asked for policies about fewer of them. */
const LONGEST_SCHEMA = 200_000;

/** What a model is told before the sentence. */
export function systemPrompt(gatewayArn: string, schema: string): string {
  return `You write policies in Cedar for a gateway of tools. The user says in a sentence what is allowed or forbidden.

Answer with JSON alone: {"policies": [{"fragment": "the part of the sentence", "statement": "the policy"}]}. One policy for each rule of the
sentence; together the fragments cover the sentence. Where the schema has nothing to express a part with, its statement is null.

Rules of the language:
- A request is denied unless a permit matches; a forbid that matches always wins.
- resource == AgentCore::Gateway::"${gatewayArn}"
- action == AgentCore::Action::"Target___tool", as the schema names it.
- Users of a token are "principal is AgentCore::OAuthUser". Their claims are tags, all of them texts, and a list is its JSON. Ask whether there is one
  first: principal.hasTag("role") && principal.getTag("role") == "admin", or for a list
  principal.hasTag("groups") && principal.getTag("groups") like "*\\"finance\\"*".
- Parameters of a tool are context.input.NAME. Ask for an optional one first: context.input has NAME && context.input.NAME < 500.
- Numbers with a fraction are decimals: context.input.price.lessThan(decimal("9.5")).
- Each statement is one permit or forbid that ends in a semicolon.

The schema of the tools:
${schema.slice(0, LONGEST_SCHEMA)}`;
}

/** What a model is told of an answer that does not fit. */
export function repairPrompt(problems: readonly string[]): string {
  return `The validator refuses some of it. Answer with the whole JSON again, corrected.\n\n${problems.join('\n\n').slice(0, 20_000)}`;
}

/** Reads the answer of a model; undefined if it is not a list of policies. */
export function readAnswer(text: string): Drafted[] | undefined {
  let value: unknown;
  try {
    // Some models put what they are asked for between fences.
    value = JSON.parse(text.replace(/^\s*```(?:json)?\s*|\s*```\s*$/g, ''));
  } catch {
    return undefined;
  }
  const { policies } = Object(value) as { policies?: unknown };
  if (!Array.isArray(policies) || policies.length === 0 || policies.length > MOST_DRAFTS) return undefined;
  const drafts = policies.map(draftOf);
  return drafts.every((draft) => draft !== undefined) ? drafts : undefined;
}

function draftOf(value: unknown): Drafted | undefined {
  const { fragment, statement } = Object(value) as Record<string, unknown>;
  if (typeof fragment !== 'string' || fragment === '' || fragment.length > LONGEST_FRAGMENT) return undefined;
  if (statement === null || statement === undefined) return { fragment, statement: undefined };
  return typeof statement === 'string' && statement.length <= LONGEST_STATEMENT ? { fragment, statement } : undefined;
}
