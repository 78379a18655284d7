export type { CredentialPlace, HttpBody, HttpParameter, HttpTemplate, HttpTool } from './http-tool.ts';
