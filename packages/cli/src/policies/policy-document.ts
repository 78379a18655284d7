import { readFile } from 'node:fs/promises';
import { basename, dirname, extname, resolve } from 'node:path';
import type { CheckDocument, PolicySource } from '@agentplatform/policy-engine';
import type { ValidateFunction } from 'ajv';
import { parse } from 'yaml';
import { CliError } from '../cli-error.ts';
import { schemaProblems, wrongFile } from '../schema-problems.ts';
import { isDogwood } from './statement.ts';

/** A tool as MCP lists it, such as `agentcore gateway tools --json` prints it. */
interface Tool {
  name: string;
  inputSchema: object;
  outputSchema?: object;
}

/** The file that `agentcore policy check` reads. */
interface PolicyDocument {
  gatewayArn?: string;
  principals?: ('OAuthUser' | 'IamEntity')[];
  tools: string | Tool[];
  policies: (string | { file: string; mode?: PolicySource['mode'] })[];
  tests?: CheckDocument['tests'];
}

const MOST_BYTES = 16 * 1024 * 1024;

const TOOL = {
  type: 'object',
  required: ['name', 'inputSchema'],
  properties: { name: { type: 'string' }, inputSchema: { type: 'object' }, outputSchema: { type: 'object' } },
};
const TOOLS = { type: 'array', items: TOOL };
const NAME = { type: 'string', minLength: 1 };
const EVENT = {
  type: 'object',
  required: ['kind', 'action', 'secondsAgo'],
  additionalProperties: false,
  properties: {
    kind: { enum: ['request', 'response', 'error'] },
    ...{ action: NAME, secondsAgo: { type: 'number', minimum: 0 }, input: {}, output: {} },
  },
};
const PRINCIPAL = {
  type: 'object',
  required: ['type', 'id'],
  additionalProperties: false,
  properties: {
    type: { enum: ['OAuthUser', 'IamEntity'] },
    ...{ id: { type: 'string' }, tags: { type: 'object', additionalProperties: { type: 'string' } } },
  },
};
const TEST = {
  type: 'object',
  required: ['name', 'principal', 'action', 'expect'],
  additionalProperties: false,
  properties: {
    ...{ name: NAME, principal: PRINCIPAL, action: NAME, input: {}, now: { type: 'string' } },
    history: { type: 'array', maxItems: 10_000, items: EVENT },
    expect: { enum: ['ALLOW', 'DENY'] },
    determining: { type: 'array', items: NAME },
  },
};
const FILE = {
  type: 'object',
  required: ['file'],
  additionalProperties: false,
  properties: { file: NAME, mode: { enum: ['ACTIVE', 'LOG_ONLY'] } },
};
const DOCUMENT = {
  type: 'object',
  required: ['tools', 'policies'],
  additionalProperties: false,
  properties: {
    gatewayArn: NAME,
    principals: { type: 'array', minItems: 1, items: { enum: ['OAuthUser', 'IamEntity'] } },
    tools: { anyOf: [NAME, TOOLS] },
    policies: { type: 'array', minItems: 1, items: { anyOf: [NAME, FILE] } },
    tests: { type: 'array', items: TEST },
  },
};

/** Where nothing names the gateway. */
const SOME_GATEWAY = 'arn:aws:bedrock-agentcore:us-east-1:000000000000:gateway/some-gateway';

/** Tools, policies and examples, read from a file and those that it names. Rejects with a `CliError` (usage) that says what is wrong in which of them. */
export async function readPolicyDocument(path: string): Promise<CheckDocument> {
  const document = await valid<PolicyDocument>(path, await parsed(path), DOCUMENT);
  const beside = (file: string): string => resolve(dirname(path), file);
  const tools =
    typeof document.tools === 'string'
      ? await valid<Tool[]>(beside(document.tools), await parsed(beside(document.tools)), TOOLS)
      : document.tools;
  const policies = await Promise.all(document.policies.map((one) => readPolicy(beside, one)));
  const twice = policies.find(({ id }, at) => policies.findIndex((other) => other.id === id) !== at);
  if (twice) throw new CliError('usage', `${path} is wrong: two policies are called ${twice.id}.`);
  return {
    gatewayArn: document.gatewayArn ?? gatewayIn(policies) ?? SOME_GATEWAY,
    ...(document.principals && { principals: document.principals }),
    targets: targetsOf(path, tools),
    policies,
    tests: document.tests ?? [],
  };
}

/** A policy is called as its file is, without the ending. */
async function readPolicy(
  beside: (file: string) => string,
  named: PolicyDocument['policies'][number],
): Promise<PolicySource> {
  const { file, mode = 'ACTIVE' } = typeof named === 'string' ? { file: named } : named;
  const text = (await textOf(beside(file))).trim();
  return { id: basename(file, extname(file)), text, language: isDogwood(text) ? 'dogwood' : 'cedar', mode };
}

function gatewayIn(policies: readonly PolicySource[]): string | undefined {
  return policies.map(({ text }) => /\bresource\s*==\s*AgentCore::Gateway::"([^"]+)"/.exec(text)?.[1]).find(Boolean);
}

function targetsOf(path: string, tools: readonly Tool[]): CheckDocument['targets'] {
  const targets = new Map<string, Tool[]>();
  for (const tool of tools) {
    const [, target = '', name = ''] = /^(.+?)___(.+)$/.exec(tool.name) ?? [];
    // Its own search needs no permit.
    if (tool.name.startsWith('x_')) continue;
    if (target === '')
      throw new CliError(
        'usage',
        `${path} is wrong: the tool ${tool.name} names no target.`,
        'A tool is called TARGET___TOOL, as a gateway lists it: agentcore gateway tools --json',
      );
    targets.set(target, [...(targets.get(target) ?? []), { ...tool, name }]);
  }
  return [...targets].map(([name, own]) => ({ name, tools: own }));
}

async function parsed(path: string): Promise<unknown> {
  const text = await textOf(path);
  try {
    // JSON is YAML, too.
    return parse(text, { maxAliasCount: 100 });
  } catch (error) {
    throw new CliError('usage', `${path} is neither YAML nor JSON: ${error instanceof Error ? error.message : error}`);
  }
}

async function textOf(path: string): Promise<string> {
  try {
    const text = await readFile(path, 'utf8');
    if (text.length <= MOST_BYTES) return text;
  } catch (cause) {
    throw new CliError('usage', `${path} cannot be read.`, cause instanceof Error ? cause.message : String(cause));
  }
  throw new CliError('usage', `${path} has more than ${MOST_BYTES / 1024 / 1024} MiB.`);
}

async function valid<Shape>(path: string, value: unknown, schema: object): Promise<Shape> {
  // Loaded when a document is read, as it takes a third of a command's start.
  const { Ajv } = await import('ajv');
  const validate: ValidateFunction<Shape> = new Ajv({ allErrors: true, allowUnionTypes: true }).compile<Shape>(schema);
  if (validate(value)) return value;
  throw wrongFile(path, schemaProblems(validate.errors ?? [], schema));
}
