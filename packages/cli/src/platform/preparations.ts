import { CliError } from '../cli-error.ts';
import { adminJson } from './admin.ts';
import type { Connection } from './connection.ts';

/** Something that the platform makes or fetches in the background. */
export interface Preparation {
  name: string;
  what: string;
  state: 'under way' | 'ready' | 'failed';
  /** What is being done, or why it failed. */
  step: string;
  seconds: number;
  usualSeconds: number;
}

/** Asks the platform what it prepares (`GET /_platform/preparations`). */
export async function askPreparations(connection: Connection, signal: AbortSignal): Promise<Preparation[]> {
  const either = AbortSignal.any([signal, AbortSignal.timeout(30_000)]);
  const value = await adminJson(connection, { path: '/preparations', signal: either });
  const found = typeof value === 'object' && value !== null ? Reflect.get(value, 'preparations') : undefined;
  if (Array.isArray(found) && found.every(isPreparation)) return found;
  throw new CliError('failure', 'The platform does not report what it prepares. It may be a different version.');
}

function isPreparation(value: unknown): value is Preparation {
  if (typeof value !== 'object' || value === null) return false;
  const { name, what, state, step, seconds, usualSeconds } = value as Record<string, unknown>;
  return (
    [name, what, step].every((text) => typeof text === 'string') &&
    [seconds, usualSeconds].every((time) => typeof time === 'number') &&
    ['under way', 'ready', 'failed'].includes(String(state))
  );
}
