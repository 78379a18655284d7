export { Connections } from './connections.ts';
export { type Admitted, LimitedRequests } from './limited-requests.ts';
export { type OpenLimit, openLimit } from './open-limit.ts';
export { type Bucket, MONTH_MS, Permits } from './permits.ts';
export { RATE_LIMIT_KIND, type RateLimit } from './rate-limit.ts';
export { RATE_LIMIT_FIELDS } from './rate-limit-fields.ts';
export { RATE_LIMIT_OPERATIONS, rateLimitOperations } from './rate-limit-operations.ts';
export { RateLimits } from './rate-limits.ts';
export { isBody, roleOrUser, type Traffic } from './traffic.ts';
