import { codeInterpreterConnector } from './code-interpreter-connector.ts';
import type { Connector } from './connector.ts';
import { memoryConnector } from './memory-connector.ts';

/** Connectors by their ids; a text says why one that is known is not offered. */
export const CONNECTORS: Readonly<Record<string, Connector | string>> = {
  'agentcore-memory': memoryConnector,
  'agentcore-code-interpreter': codeInterpreterConnector,
  'agentcore-browser': 'comes with the Browser, which is not built yet',
  'bedrock-knowledge-bases':
    'is not offered: the platform has no knowledge bases; use agentcore-memory, or an MCP server',
  'web-search': 'is not offered: the platform searches no web by itself; add an API or MCP server that does',
  'bedrock-mantle': 'is for targets of models (inference), which are not built yet',
  openai: 'is for targets of models (inference), which are not built yet',
  anthropic: 'is for targets of models (inference), which are not built yet',
};
