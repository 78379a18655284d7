export { addressKey } from './address-key.ts';
export { type AuditRecord, nameOf } from './audit-record.ts';
export { AuditTrail } from './audit-trail.ts';
export { BodyMemory } from './body-memory.ts';
export { type Caller as OperationCaller, OperationCalls } from './calls.ts';
export type { Entered, EntryRequest, Resources } from './entry.ts';
export { INERT_HEADERS, mayRun } from './inert.ts';
export { originOf } from './origin-of.ts';
export { type Passing, type PassRequest, type PassService, passThrough } from './pass-through.ts';
export { Pipeline, type PipelineDeps } from './pipeline.ts';
export { type OnGone, PushBody, requestUpstream, type UpstreamResponse } from './push-body.ts';
export { RateLimiter } from './rate-limiter.ts';
export { RequestBody } from './request-body.ts';
export { closeSignal } from './request-context.ts';
export { admitBySandbox, RequestRates } from './request-rates.ts';
export { firstRows, hoursBack, numberIn } from './routes/hours-back.ts';
export { readMembers } from './routes/read-members.ts';
export {
  type Asked,
  type KnownCall,
  type KnownRoute,
  type Listener,
  type OpenCall,
  type Route,
  type RouteSet,
  SIGNED,
} from './routes/route.ts';
export { RoutePipeline } from './routes/route-pipeline.ts';
export { createHttpServer, type HttpServer, type HttpServerDeps } from './server.ts';
export { toServiceError } from './service-errors.ts';
export { closeSocket } from './sockets/close-socket.ts';
export { type DialedStream, dialUpgrade, type UpgradeDial, UpgradeRefused } from './sockets/dial-upgrade.ts';
export { closeReason, sendableCode } from './sockets/frames.ts';
export { acceptOf, acceptUpgrade, readHandshake } from './sockets/handshake.ts';
export { keepAlive } from './sockets/heartbeat.ts';
export { SocketPipeline, type SocketPipelineDeps } from './sockets/socket-pipeline.ts';
export type { SocketOpening, SocketRequest, SocketService } from './sockets/socket-service.ts';
export { SplicedStream } from './sockets/spliced-stream.ts';
export type { Authorize } from './stages.ts';
export { LOOPBACK, TrustedAddresses } from './trusted-addresses.ts';
export { logDefect } from './wire-error.ts';
