import { errors } from '@agentplatform/contract';

/** Members of the wire that nothing here would heed. */
export const UNSERVED = [
  'browserSigning',
  'extensions',
  'proxyConfiguration',
  'enterprisePolicies',
  'certificates',
  'filesystemConfigurations',
] as const;

/** Refuses by its name what would be ignored: a setting that has no effect is worse than none. What asks for nothing is taken. */
export function refuseUnserved(call: { [member in (typeof UNSERVED)[number]]?: unknown }): void {
  for (const field of UNSERVED) {
    if (asksForNothing(call[field])) continue;
    throw errors.invalidField(field, 'is not supported by this platform yet', { remedy: 'Leave it out.' });
  }
}

function asksForNothing(value: unknown): boolean {
  if (value === undefined) return true;
  if (Array.isArray(value)) return value.length === 0;
  return typeof value === 'object' && value !== null && 'enabled' in value && value.enabled === false;
}
