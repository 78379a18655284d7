export { asOutboundError, OutboundError, type OutboundErrorCode } from './errors.ts';
export {
  createOutbound,
  DEFAULT_OUTBOUND_LIMITS,
  type Outbound,
  type OutboundDeps,
  type OutboundLimits,
  type OutboundRequest,
  type OutboundResponse,
} from './outbound.ts';
export type { Resolve, ResolvedAddress } from './resolver.ts';
