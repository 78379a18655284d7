import { Server as OldServer } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CallToolRequestSchema,
  type ElicitResultSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import {
  type CallToolResult,
  type InputRequiredResult,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server';

/** What a tool of a test does, in servers of both eras. */
export interface ToolRun {
  name: string;
  arguments: Record<string, unknown>;
  signal: AbortSignal;
  /** Tells the client of progress, where it asked to be told. */
  progress(progress: number): Promise<void>;
  /** Asks the client; of the versions before 2026-07-28 alone. */
  ask?(request: object, schema: typeof ElicitResultSchema): Promise<object>;
  /** Of 2026-07-28 alone. */
  input?: Pick<ServerContext['mcpReq'], 'inputResponses' | 'requestState'>;
}

/** What a server of a test offers. */
export interface Stock {
  tools?: object[];
  prompts?: object[];
  resources?: object[];
  templates?: object[];
  run?(run: ToolRun): Promise<object> | object;
}

/** Entries on one page. */
const PAGE = 2;
const INFO = { name: 'stock', version: '1.0.0' };

export function modernServer({ tools = [], prompts = [], resources = [], templates = [], run }: Stock): Server {
  const server = new Server(INFO, { capabilities: { tools: {}, prompts: {}, resources: {} } });
  // What a server sends need not be what its types say.
  server.setRequestHandler('tools/list', ({ params }) => page('tools', tools, params?.cursor) as never);
  server.setRequestHandler('prompts/list', ({ params }) => page('prompts', prompts, params?.cursor) as never);
  server.setRequestHandler('resources/list', ({ params }) => page('resources', resources, params?.cursor) as never);
  server.setRequestHandler(
    'resources/templates/list',
    ({ params }) => page('resourceTemplates', templates, params?.cursor) as never,
  );
  server.setRequestHandler('prompts/get', ({ params }) => gotten(params.name));
  server.setRequestHandler('resources/read', ({ params }) => read(params.uri));
  server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    const result = await run?.({
      ...{ name: params.name, arguments: params.arguments ?? {}, signal: mcpReq.signal, input: mcpReq },
      async progress(progress) {
        if (progressToken === undefined) return;
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress } });
      },
    });
    return (result ?? { content: [] }) as CallToolResult | InputRequiredResult;
  });
  return server;
}

export function sessionServer({ tools = [], prompts = [], resources = [], templates = [], run }: Stock): OldServer {
  const server = new OldServer(INFO, { capabilities: { tools: {}, prompts: {}, resources: {} } });
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => page('tools', tools, params?.cursor));
  server.setRequestHandler(ListPromptsRequestSchema, ({ params }) => page('prompts', prompts, params?.cursor));
  server.setRequestHandler(ListResourcesRequestSchema, ({ params }) => page('resources', resources, params?.cursor));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, ({ params }) =>
    page('resourceTemplates', templates, params?.cursor),
  );
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) => gotten(params.name));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => read(params.uri));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, sendNotification, sendRequest }) => {
    const progressToken = params._meta?.progressToken;
    const result = await run?.({
      ...{ name: params.name, arguments: params.arguments ?? {}, signal },
      // What a server asks need not be what its types say.
      ask: (request, schema) => sendRequest(request as never, schema),
      async progress(progress) {
        if (progressToken === undefined) return;
        await sendNotification({ method: 'notifications/progress', params: { progressToken, progress } });
      },
    });
    return { ...(result ?? { content: [] }) };
  });
  return server;
}

function page(member: string, all: readonly object[], cursor: string | undefined): Record<string, unknown> {
  const from = Number(cursor ?? 0);
  const next = from + PAGE < all.length ? { nextCursor: String(from + PAGE) } : {};
  return { [member]: all.slice(from, from + PAGE), ...next };
}

function gotten(name: string) {
  return { messages: [{ role: 'user' as const, content: { type: 'text' as const, text: `prompt ${name}` } }] };
}

function read(uri: string) {
  return { contents: [{ uri, text: `text of ${uri}` }] };
}
