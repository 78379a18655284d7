export { BackendConnections } from './backend-connections.ts';
export { McpServerKind } from './mcp-server-kind.ts';
export { longNames, readTools } from './read-offers.ts';
