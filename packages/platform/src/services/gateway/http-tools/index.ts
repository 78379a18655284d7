export { buildRequest, type HttpRequest } from './build-request.ts';
export type { CredentialPlace, HttpTool } from './http-tool.ts';
export { createMask, type Mask } from './mask.ts';
export { readAnswer, structuredResult } from './read-answer.ts';
export { RefusedArgumentError } from './refused-argument.ts';
