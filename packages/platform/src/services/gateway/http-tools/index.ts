export { buildRequest, type HttpRequest } from './build-request.ts';
export { isReservedHeader } from './header-rules.ts';
export type { CredentialPlace, HttpBody, HttpParameter, HttpTemplate, HttpTool } from './http-tool.ts';
export { createMask, type Mask } from './mask.ts';
export { type HttpAnswer, type ReadOptions, readAnswer, type ToolContent, type ToolResult } from './read-answer.ts';
export { RefusedArgumentError } from './refused-argument.ts';
