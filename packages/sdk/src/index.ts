export { AgentPlatformApp, type AppOptions, type Entrypoint, type Payload, type RunOptions } from './app.ts';
export { getContext, type InvocationContext } from './context.ts';
export { onCopy, reseedIfCopied } from './copies.ts';
export type { PingHandler, PingStatus, RunningTask } from './health.ts';
export type { RunningApp } from './serve.ts';
export type { AgentSocket, WebSocketHandler } from './websocket.ts';
