import { type control, type data, errors } from '@agentplatform/contract';

/** A tool of a harness or of one invocation: both planes of the wire have the same shape. */
export type HarnessTool = control.HarnessTool | data.HarnessTool;

/** The member of `config` that each type of tool has. */
const CONFIGS = {
  remote_mcp: 'remoteMcp',
  agentcore_browser: 'agentCoreBrowser',
  agentcore_gateway: 'agentCoreGateway',
  inline_function: 'inlineFunction',
  agentcore_code_interpreter: 'agentCoreCodeInterpreter',
} as const;
/** Types that need none: what they name has a default. */
const WITHOUT: readonly string[] = ['agentcore_browser', 'agentcore_code_interpreter'];

/** Tools that one harness or one invocation may have. */
const MOST_TOOLS = 1_000;

/** What a tool is called where it has no name of its own. */
export function nameOf({ type, name }: HarnessTool, index: number): string {
  if (name !== undefined) return name;
  const usual = { agentcore_browser: 'browser', agentcore_code_interpreter: 'code_interpreter' } as const;
  return type === 'agentcore_browser' || type === 'agentcore_code_interpreter' ? usual[type] : `${type}_${index + 1}`;
}

/** Throws ValidationException for tools that could never be called. */
export function checkTools(tools: readonly HarnessTool[]): void {
  if (tools.length > MOST_TOOLS) throw errors.invalidField('tools', `must not be more than ${MOST_TOOLS}`);
  const names = new Set<string>();
  for (const [index, tool] of tools.entries()) {
    const field = `tools[${index}]`;
    const wanted = CONFIGS[tool.type];
    const given = Object.keys(tool.config ?? {});
    if (!given.includes(wanted) && !(WITHOUT.includes(tool.type) && given.length === 0))
      throw errors.invalidField(`${field}.config`, `must have ${wanted}, for the type is ${tool.type}`);
    if (tool.type === 'inline_function' && tool.name === undefined)
      throw errors.invalidField(`${field}.name`, 'is required: the model calls an inline function by it');
    const name = nameOf(tool, index);
    if (names.has(name)) throw errors.invalidField(`${field}.name`, `is taken by another tool: ${name}`);
    names.add(name);
    checkSchema(tool, field);
  }
}

function checkSchema({ config }: HarnessTool, field: string): void {
  const schema = config?.inlineFunction?.inputSchema;
  if (schema === undefined) return;
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema))
    throw errors.invalidField(
      `${field}.config.inlineFunction.inputSchema`,
      'must be a JSON schema, which is an object',
    );
}
