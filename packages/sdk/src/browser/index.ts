export { BrowserClient, type BrowserClientOptions, browserSession, type StartOptions } from './browser-client.ts';
export { BrowserTools } from './browser-tools.ts';
export type { WsHeaders } from './ws-headers.ts';
