import { setTimeout as delay } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CallToolRequestSchema,
  type CallToolResult,
  CompleteRequestSchema,
  CreateMessageResultSchema,
  ElicitResultSchema,
  ErrorCode,
  GetPromptRequestSchema,
  type GetPromptResult,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  type ReadResourceResult,
} from '@modelcontextprotocol/sdk/types.js';
import { ANSWERS, PROMPTS, promptOf, RESOURCES, resourceOf, TEMPLATES, toolsWith } from './stock.ts';

type Extra = Parameters<Parameters<Server['setRequestHandler']>[1]>[1];
type Run = (args: Record<string, unknown>, extra: Extra) => Promise<CallToolResult>;

const said = (words: string): CallToolResult => ({ content: [{ type: 'text', text: words }] });
/** Between two notifications: the suite reads them one by one. */
const PAUSE_MS = 50;

/** Asks the person for what the schema says. */
async function elicit({ sendRequest }: Extra, message: string, properties: object): Promise<CallToolResult> {
  const requestedSchema = { type: 'object' as const, properties };
  const request = { method: 'elicitation/create' as const, params: { message, requestedSchema } };
  // What a server of a test asks for need not be what its types say.
  const answer = await sendRequest(request as never, ElicitResultSchema);
  return said(`action=${answer.action}, content=${JSON.stringify(answer.content)}`);
}

const string = { type: 'string' };
const TITLED = ['one', 'two', 'three'].map((value) => ({ const: value, title: value.toUpperCase() }));

const RUNS: Readonly<Record<string, Run>> = {
  async test_tool_with_progress(_, { _meta, sendNotification }) {
    const progressToken = _meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
      await delay(PAUSE_MS);
    }
    return said('done');
  },
  async test_tool_with_logging(_, { sendNotification }) {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await sendNotification({ method: 'notifications/message', params: { level: 'info', data } });
      await delay(PAUSE_MS);
    }
    return said('done');
  },
  async test_sampling({ prompt }, { sendRequest }) {
    const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: String(prompt) } }];
    const request = { method: 'sampling/createMessage' as const, params: { messages, maxTokens: 100 } };
    const { content } = await sendRequest(request, CreateMessageResultSchema);
    return said(`LLM response: ${JSON.stringify(content)}`);
  },
  test_elicitation: ({ message }, extra) => elicit(extra, String(message), { username: string, email: string }),
  test_elicitation_sep1034_defaults: (_, extra) =>
    elicit(extra, 'Defaults', {
      name: { type: 'string', default: 'John Doe' },
      age: { type: 'integer', default: 30 },
      score: { type: 'number', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', default: true },
    }),
  test_elicitation_sep1330_enums: (_, extra) =>
    elicit(extra, 'Enums', {
      untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
      titledSingle: { type: 'string', oneOf: TITLED },
      legacyEnum: { type: 'string', enum: ['opt1', 'opt2'], enumNames: ['Option One', 'Option Two'] },
      untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
      titledMulti: { type: 'array', items: { anyOf: TITLED } },
    }),
};

/** A server of 2025-11-25 that has all that the conformance suite asks for. */
export function olderServer(): Server {
  const capabilities = { tools: {}, prompts: {}, resources: {}, logging: {}, completions: {} };
  const server = new Server({ name: 'older', version: '1.0.0' }, { capabilities });
  const tools = toolsWith(Object.keys(RUNS).filter((name) => name !== 'test_tool_with_progress'));
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
  server.setRequestHandler(CallToolRequestSchema, ({ params: { name, arguments: args = {} } }, extra) => {
    const known = ANSWERS[name] ?? said('nothing');
    return RUNS[name]?.(args, extra) ?? (known as CallToolResult);
  });
  server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts: PROMPTS }));
  server.setRequestHandler(
    GetPromptRequestSchema,
    ({ params }) => promptOf(params.name, params.arguments) as GetPromptResult,
  );
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: RESOURCES }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: TEMPLATES }));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => {
    const found = resourceOf(uri);
    if (!found) throw new McpError(ErrorCode.InvalidParams, 'There is no such resource.');
    return found as ReadResourceResult;
  });
  server.setRequestHandler(CompleteRequestSchema, () => ({ completion: { values: ['paris', 'park'], total: 2 } }));
  return server;
}
