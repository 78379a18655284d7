export { asOutboundError, OutboundError, type OutboundErrorCode } from './errors.ts';
export { createOutbound, type Outbound, type OutboundResponse } from './outbound.ts';
export { outboundFetch } from './outbound-fetch.ts';
export { refusalOf } from './refusal.ts';
export { boundedBody } from './response-body.ts';
