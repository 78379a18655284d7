import type { JsonObjectSchema, Problem, Tool } from '../../tools/index.ts';
import { isObject } from '../../tools/json-pointer.ts';
import { longNames, readTools } from '../mcp-server/index.ts';

/** A tool that is a call of a function. */
export interface FunctionTool extends Tool {
  /** What the function answers is the member `result` of its output schema. */
  wraps?: true;
}

const MAX_CHARACTERS = 8 * 1024 * 1024;
const MOST_TOOLS = 5_000;
const MOST_DEPTH = 60;
const TYPES = ['string', 'number', 'object', 'array', 'boolean', 'integer'];
/** Keywords of a schema, as the API model has them. */
const KEYWORDS = ['type', 'properties', 'required', 'items', 'description'];

/**
 * Tools of a tool schema: a list of definitions, or JSON text of one. Names are kept as they are; a tool that cannot keep its name, or whose schema has more
 * than the model knows, is left out with a warning.
 */
export function schemaTools(schema: unknown, target: string): { tools: FunctionTool[]; problems: Problem[] } {
  const failed = (message: string): { tools: FunctionTool[]; problems: Problem[] } => ({
    tools: [],
    problems: [{ severity: 'error', message }],
  });
  const listed = typeof schema === 'string' ? parsed(schema) : schema;
  if (!Array.isArray(listed))
    return failed('The tool schema must be a JSON list of tools, each with name, description and inputSchema.');
  if (listed.length > MOST_TOOLS)
    return failed(`The tool schema has ${listed.length} tools; a target has at most ${MOST_TOOLS}.`);
  const problems: Problem[] = [];
  const wrapped = new Set<unknown>();
  const fitting = listed.filter((raw: unknown, i) => {
    const problem = problemOf(raw);
    const name =
      isObject(raw) && typeof raw.name === 'string' ? JSON.stringify(raw.name.slice(0, 80)) : `number ${i + 1}`;
    if (problem !== undefined)
      problems.push({ severity: 'warning', message: `The tool ${name} is left out: ${problem}.` });
    return problem === undefined;
  });
  const read = readTools(
    fitting.map((raw) => withObject(raw, wrapped)),
    target,
  );
  const tools = read.offers.map((tool): FunctionTool => (wrapped.has(tool.name) ? { ...tool, wraps: true } : tool));
  problems.push(...read.problems, ...longNames(tools, target));
  if (tools.length === 0)
    problems.push({ severity: 'error', message: 'The tool schema has no tool that can be used.' });
  return { tools, problems };
}

function parsed(text: string): unknown {
  if (text.length > MAX_CHARACTERS) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What keeps a definition from being a tool; its name is looked at by who reads it. */
function problemOf(raw: unknown): string | undefined {
  if (!isObject(raw)) return 'it is not an object';
  const unknown = Object.keys(raw).find(
    (name) => !['name', 'description', 'inputSchema', 'outputSchema'].includes(name),
  );
  if (unknown !== undefined) return `it has a member that tools of functions do not have: ${unknown.slice(0, 80)}`;
  if (typeof raw.description !== 'string') return 'it has no description';
  if (!isObject(raw.inputSchema) || raw.inputSchema.type !== 'object')
    return 'its inputSchema is not a schema of an object';
  const input = schemaProblem(raw.inputSchema, 'inputSchema', 0);
  return input ?? (raw.outputSchema === undefined ? undefined : schemaProblem(raw.outputSchema, 'outputSchema', 0));
}

function schemaProblem(schema: unknown, at: string, depth: number): string | undefined {
  if (depth > MOST_DEPTH) return `its ${at.slice(0, 40)}… is nested too deep`;
  if (!isObject(schema)) return `its ${at} is not a schema`;
  const unknown = Object.keys(schema).find((name) => !KEYWORDS.includes(name));
  if (unknown !== undefined) return `its ${at} has ${unknown.slice(0, 80)}, which schemas of functions do not have`;
  const { type, properties, required, items, description } = schema;
  if (typeof type !== 'string' || !TYPES.includes(type)) return `its ${at} must have a type: ${TYPES.join(', ')}`;
  if (description !== undefined && typeof description !== 'string') return `its ${at}.description is not text`;
  if (required !== undefined && !(Array.isArray(required) && required.every((one) => typeof one === 'string')))
    return `its ${at}.required is not a list of names`;
  if (items !== undefined) return schemaProblem(items, `${at}.items`, depth + 1);
  if (properties === undefined) return undefined;
  if (!isObject(properties)) return `its ${at}.properties is not an object`;
  for (const [name, one] of Object.entries(properties)) {
    const problem = schemaProblem(one, `${at}.properties.${name.slice(0, 80)}`, depth + 1);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** The definition with an output schema that is one of an object, as the protocol has it. */
function withObject(raw: unknown, wrapped: Set<unknown>): unknown {
  if (!isObject(raw) || !isObject(raw.outputSchema) || raw.outputSchema.type === 'object') return raw;
  wrapped.add(raw.name);
  const outputSchema: JsonObjectSchema = {
    type: 'object',
    properties: { result: raw.outputSchema },
    required: ['result'],
  };
  return { ...raw, outputSchema };
}
