import type { data } from '@agentplatform/contract';
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/server';
import { type Connector, type ConnectorCall, type ConnectorTool, resultOf, textParameter } from './connector.ts';

const sessionId = textParameter(
  'The session to go on with; without it the call gets one of its own, which the result names',
);
const path = textParameter('Path of a file in the session');
const RUNS = { readOnly: false, destructive: true, idempotent: false };
const READS = { readOnly: true, destructive: false, idempotent: true };

/** Code interpreter: code, commands and files in a sandbox. What the tools take is what its own tools take, and the session. */
export const codeInterpreterConnector: Connector = {
  version: '1.0.0',
  settings: { codeInterpreterIdentifier: 'aws.codeinterpreter.v1' },
  tools: {
    executeCode: invoking('executeCode', 'Runs code in a sandbox', RUNS, ['code', 'language'], {
      code: textParameter('The code'),
      language: { enum: ['python', 'javascript', 'typescript'], description: 'What it is written in' },
      clearContext: { type: 'boolean', description: 'Forget what was run in the session before' },
    }),
    executeCommand: invoking('executeCommand', 'Runs a shell command in a sandbox', RUNS, ['command'], {
      command: textParameter('The command'),
    }),
    readFiles: invoking('readFiles', 'Reads files of a session', READS, ['paths'], {
      paths: { type: 'array', minItems: 1, items: path, description: 'Paths of the files' },
    }),
    listFiles: invoking('listFiles', 'Lists files of a session', READS, [], {
      directoryPath: textParameter('The directory'),
    }),
    writeFiles: invoking('writeFiles', 'Writes files into a session', RUNS, ['content'], {
      content: {
        ...{ type: 'array', minItems: 1, description: 'The files' },
        items: {
          ...{ type: 'object', required: ['path', 'text'], additionalProperties: false },
          properties: { path, text: { type: 'string', description: 'What is in it' } },
        },
      },
    }),
    removeFiles: invoking('removeFiles', 'Removes files of a session', RUNS, ['paths'], {
      paths: { type: 'array', minItems: 1, items: path, description: 'Paths of the files' },
    }),
    stopSession: {
      description: 'Ends a session, with its files',
      inputSchema: {
        ...{ type: 'object', required: ['sessionId'], additionalProperties: false },
        properties: { sessionId: textParameter('The session') },
      },
      hints: { ...RUNS, idempotent: true },
      async run({ calls, caller, values, settings: { codeInterpreterIdentifier = '' } }) {
        const input = { codeInterpreterIdentifier, ...(values as { sessionId: string }) };
        return resultOf(await calls.call('StopCodeInterpreterSession', input, caller));
      },
    },
  },
};

function invoking(
  name: data.ToolName,
  description: string,
  hints: ConnectorTool['hints'],
  required: string[],
  properties: ConnectorTool['inputSchema']['properties'],
): ConnectorTool {
  const inputSchema: ConnectorTool['inputSchema'] = {
    ...{ type: 'object', required, additionalProperties: false },
    properties: { ...properties, sessionId },
  };
  return { description, hints, inputSchema, run: (call) => invoke(name, call) };
}

async function invoke(
  name: data.ToolName,
  { calls, caller, values, settings: { codeInterpreterIdentifier = '' } }: ConnectorCall,
): Promise<CallToolResult> {
  // Checked against the tool's schema.
  const { sessionId: wanted, ...args } = values as data.ToolArguments & { sessionId?: string };
  const input = {
    codeInterpreterIdentifier,
    name,
    arguments: args,
    ...(wanted !== undefined && { sessionId: wanted }),
  };
  const { stream, sessionId = '' } = await calls.call('InvokeCodeInterpreter', input, caller);
  let last: data.CodeInterpreterResult = { content: [] };
  for await (const event of stream) if (event.result) last = event.result;
  const { content, structuredContent, isError } = last;
  return {
    content: content.flatMap(blockOf),
    structuredContent: { ...structuredContent, sessionId },
    ...(isError && { isError }),
  };
}

function blockOf(block: data.ContentBlock): ContentBlock[] {
  const { type, text = '', data: bytes, mimeType, uri = '', name = uri, description, size, resource } = block;
  const of = { ...(mimeType !== undefined && { mimeType }) };
  if (type === 'text') return [{ type, text }];
  if (type === 'image') return [{ type, data: base64(bytes), mimeType: mimeType ?? 'application/octet-stream' }];
  if (type === 'resource_link')
    return [
      {
        type,
        uri,
        name,
        ...of,
        ...(description !== undefined && { description }),
        ...(size !== undefined && { size }),
      },
    ];
  if (!resource) return [];
  const { uri: at = '', mimeType: kind, text: told, blob } = resource;
  const held = { uri: at, ...(kind !== undefined && { mimeType: kind }) };
  return [{ type, resource: told === undefined ? { ...held, blob: base64(blob) } : { ...held, text: told } }];
}

function base64(bytes: Uint8Array = new Uint8Array()): string {
  return Buffer.from(bytes).toString('base64');
}
