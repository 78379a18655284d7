import type { data } from '@agentplatform/contract';
import { ServiceError } from '@agentplatform/contract';
import type { OperationCaller, OperationCalls } from '../../../kernel/http/index.ts';
import type { Json, JsonSchema } from '../../../kernel/models/index.ts';
import type { ResultContent } from '../conversations/message.ts';
import type { SessionsOfTools } from './sessions-of-tools.ts';
import type { Given, ServedTool, ToolServer } from './tool-server.ts';

/** A code interpreter as the tool of one session of a harness. */
export interface InterpreterPlace {
  /** What the harness calls it. */
  name: string;
  /** ARN or id. */
  interpreter: string;
  calls: Pick<OperationCalls, 'call'>;
  /** The harness's role, for this invocation. */
  caller: OperationCaller;
  /** The interpreter's sessions, by the harness's. */
  sessions: SessionsOfTools;
  /** Of the harness's session. */
  session: string;
}

const TEXT = { type: 'string' } as const;

/** What the model may do there, by the names of the wire. */
const TOOLS: Readonly<Record<string, { tool: data.ToolName; description: string; inputSchema: JsonSchema }>> = {
  execute_code: {
    tool: 'executeCode',
    description:
      'Runs code in a sandbox that keeps its variables and files between calls. What it prints is the result.',
    inputSchema: {
      ...{ type: 'object', required: ['code', 'language'] },
      properties: { code: TEXT, language: { type: 'string', enum: ['python', 'javascript', 'typescript'] } },
    },
  },
  execute_command: {
    tool: 'executeCommand',
    description: 'Runs a shell command in the sandbox of the code interpreter.',
    inputSchema: { type: 'object', required: ['command'], properties: { command: TEXT } },
  },
  write_files: {
    tool: 'writeFiles',
    description: 'Writes files into the sandbox of the code interpreter.',
    inputSchema: {
      ...{ type: 'object', required: ['content'] },
      properties: {
        content: {
          type: 'array',
          items: { type: 'object', required: ['path', 'text'], properties: { path: TEXT, text: TEXT } },
        },
      },
    },
  },
  read_files: {
    tool: 'readFiles',
    description: 'Reads files of the sandbox of the code interpreter.',
    inputSchema: { type: 'object', required: ['paths'], properties: { paths: { type: 'array', items: TEXT } } },
  },
  list_files: {
    tool: 'listFiles',
    description: 'Lists a directory of the sandbox of the code interpreter.',
    inputSchema: { type: 'object', properties: { directoryPath: TEXT } },
  },
};

/** Tools that run code in a session of a code interpreter, which goes with the harness's session. */
export function codeInterpreter(place: InterpreterPlace): ToolServer {
  const tools = Object.entries(TOOLS).map(
    ([name, { tool, description, inputSchema }]): ServedTool => ({
      ...{ name, description, inputSchema },
      run: (input) => invoke(place, tool, input),
    }),
  );
  return { name: place.name, type: 'server_tool_use', tools, close: async () => undefined };
}

async function invoke(place: InterpreterPlace, name: data.ToolName, input: Json): Promise<Given> {
  const { calls, caller, sessions, session, interpreter } = place;
  const codeInterpreterIdentifier = interpreter;
  const start = async (): Promise<string> =>
    (await calls.call('StartCodeInterpreterSession', { codeInterpreterIdentifier, name: 'harness' }, caller)).sessionId;
  return sessions.use(`${session}\n${place.name}`, start, hasEnded, async (sessionId) => {
    // The operation itself checks what the model gave.
    const args = input as data.ToolArguments;
    const { stream } = await calls.call(
      'InvokeCodeInterpreter',
      { codeInterpreterIdentifier, sessionId, name, arguments: args },
      { ...caller, sessionId },
    );
    let last: data.CodeInterpreterResult = { content: [] };
    for await (const event of stream) if (event.result) last = event.result;
    return { status: last.isError ? 'error' : 'success', content: last.content.map(shown) };
  });
}

function hasEnded(error: unknown): boolean {
  return error instanceof ServiceError && ['ResourceNotFoundException', 'ConflictException'].includes(error.code);
}

function shown({ type, text, uri, name, resource }: data.ContentBlock): ResultContent {
  if (text !== undefined) return { text };
  if (resource?.text !== undefined) return { text: resource.text };
  return { text: `[${type}${(uri ?? name) === undefined ? '' : ` ${uri ?? name}`}, which is not shown]` };
}
