import type { DocumentValue } from '@agentplatform/contract';
import type { Mask } from '../../http-tools/index.ts';

/** A value that came as JSON, without the secrets; the shape stays. */
export function masked<T>(value: T, mask: Mask): T {
  // Came as JSON, and only its texts change.
  return mask.value(value as DocumentValue) as T;
}
