export { BrowserClient, type BrowserClientOptions, browserSession, type StartOptions } from './browser-client.ts';
export type { WsHeaders } from './ws-headers.ts';
