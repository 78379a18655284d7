import type { control } from '@agentplatform/contract';
import { fromResource, type Resource } from '../../../kernel/storage/index.ts';
import { list, object, stored, text, wire } from '../../../kernel/stored-shape.ts';

/** In the table `resources`. */
export const RATE_LIMIT_KIND = 'gateway-rate-limit';

/** What is kept of a rate limit beside its names. */
export interface RateLimitData {
  description?: string | undefined;
  /** In order: wildcards stand at the end of them. */
  dimensionKeys: readonly string[];
  entries: readonly control.LimitEntry[];
}

export const storedRateLimit = stored<RateLimitData>(
  object({ dimensionKeys: list(text), entries: list(wire<control.LimitEntry>()) }, { description: text }),
);

/** How much of a gateway’s traffic goes through, by what the requests have in common (spec: Gateway). */
export interface RateLimit extends RateLimitData {
  gatewayArn: string;
  /** The owner’s word for it, unique in the gateway. */
  id: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
  updatedAt: number;
}

/** The rate limit that a row holds. */
export function rateLimitFrom(resource: Resource<RateLimitData>): RateLimit {
  return { ...fromResource(resource), gatewayArn: resource.parent };
}

/** The ARN by which a row is found; the wire has none. */
export function rateLimitArn(gatewayArn: string, id: string): string {
  return `${gatewayArn}/rate-limit/${id}`;
}
