import { CliError } from '../cli-error.ts';
import { adminJson } from '../platform/admin.ts';
import type { Connection } from '../platform/connection.ts';
import type { Builder, Provider } from './local-probe.ts';

export interface DoctorReport {
  /** The platform that was asked; undefined when this machine was looked at without one. */
  platform: string | undefined;
  /** Why no platform was asked. */
  note: string | undefined;
  node: string;
  providers: Provider[];
  /** Managed language runtimes; undefined when only a platform could say. */
  codeRuntimes: string[] | undefined;
  /** Places that sandboxes share, with what the machine lacks for them; undefined when only a platform could say. */
  sharedPlaces: SharedPlace[] | undefined;
  builders: Builder[];
}

export type SharedPlace = Pick<Provider, 'missing'> & { id: string; kind: string };

/** What a platform knows of itself, as far as doctor shows it. */
export type PlatformReport = Pick<DoctorReport, 'platform' | 'providers' | 'codeRuntimes' | 'sharedPlaces'>;

/** Asks the platform what it found (`GET /_platform/doctor`: `{providers: ProbeReport[], codeRuntimes: string[], sharedPlaces: …}`). */
export async function askPlatform(connection: Connection): Promise<PlatformReport> {
  const value = await adminJson(connection, { path: '/doctor', signal: AbortSignal.timeout(30_000) });
  const field = (name: string): unknown =>
    typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
  const providers = field('providers');
  const runtimes = field('codeRuntimes');
  const places = field('sharedPlaces');
  if (!Array.isArray(providers) || !providers.every(isProvider)) {
    throw new CliError('failure', 'The platform’s answer to doctor cannot be read; it may be of another version.');
  }
  return {
    platform: connection.endpoint,
    providers,
    codeRuntimes: Array.isArray(runtimes) ? runtimes.map(String) : undefined,
    // An older platform says nothing of them.
    sharedPlaces: Array.isArray(places) ? places.filter(isSharedPlace) : undefined,
  };
}

function isProvider(value: unknown): value is Provider {
  if (typeof value !== 'object' || value === null) return false;
  const { provider, usable, isolation, missing } = value as Record<string, unknown>;
  return (
    typeof provider === 'string' &&
    typeof usable === 'boolean' &&
    typeof isolation === 'string' &&
    Array.isArray(missing)
  );
}

function isSharedPlace(value: unknown): value is SharedPlace {
  if (typeof value !== 'object' || value === null) return false;
  const { id, kind, missing } = value as Record<string, unknown>;
  return typeof id === 'string' && typeof kind === 'string' && Array.isArray(missing);
}
