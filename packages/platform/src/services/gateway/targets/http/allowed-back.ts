import { connectionOptions } from '../../../../kernel/hop-by-hop.ts';
import { goesBack } from '../../headers-back.ts';
import type { TargetDefinition } from '../target.ts';

/** What of an answer's headers goes back to the caller because the target's list names it. */
export function allowedBack(
  { metadataConfiguration }: TargetDefinition,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string | string[] | undefined> {
  const names = (metadataConfiguration?.allowedResponseHeaders ?? []).map((name) => name.toLowerCase());
  const options = connectionOptions(headers.connection);
  const passed = names.filter((name) => goesBack(name) && !options.has(name));
  return Object.fromEntries(passed.map((name) => [name, headers[name]]));
}
