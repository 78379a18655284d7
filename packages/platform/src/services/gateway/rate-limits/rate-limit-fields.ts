import type { control } from '@agentplatform/contract';
import type { FieldTable } from '../../../kernel/served-fields.ts';

/** Every field of the operations that write rate limits: served, or why it is refused. */
export const RATE_LIMIT_FIELDS: FieldTable<
  | keyof control.CreateGatewayRateLimitRequest
  | keyof control.UpdateGatewayRateLimitRequest
  | keyof control.BatchPutGatewayRateLimitsRequest
> = {
  gatewayIdentifier: 'served',
  clientToken: 'served',
  rateLimitId: 'served',
  description: 'served',
  dimensionKeys: 'served',
  entries: 'served',
  'entries.dimensions': 'served',
  'entries.requests.rate': 'served',
  'entries.requests.period': 'served',
  'entries.connections.rate': 'served',
  'entries.connections.period': 'served',
  'entries.tokens.rate': 'served',
  'entries.tokens.period': 'served',
  rateLimits: 'served',
  'rateLimits.rateLimitId': 'served',
  'rateLimits.description': 'served',
  'rateLimits.dimensionKeys': 'served',
  'rateLimits.entries.dimensions': 'served',
  'rateLimits.entries.requests.rate': 'served',
  'rateLimits.entries.requests.period': 'served',
  'rateLimits.entries.connections.rate': 'served',
  'rateLimits.entries.connections.period': 'served',
  'rateLimits.entries.tokens.rate': 'served',
  'rateLimits.entries.tokens.period': 'served',
};
