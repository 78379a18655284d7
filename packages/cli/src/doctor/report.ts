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
  /** Of the platform's data directory, in bytes; undefined when only a platform could say. */
  disk: DiskReport | undefined;
  /** The platform's database, with what it lacks; undefined when only a platform could say. */
  database: DatabaseReport | undefined;
  /** Where browsers reach the platform, and what is wrong with that; undefined when only a platform could say. */
  publicAddress: PublicAddress | undefined;
  /** What policies are analysed with. */
  policyAnalysis: PolicyAnalysis | undefined;
  /** How often the platform was started again because it had ended unasked; undefined when only a platform could say. */
  restarts: number | undefined;
  /** Which published model of the API the platform speaks; undefined when only a platform could say. */
  model: ModelReport | undefined;
  builders: Builder[];
}

export interface ModelReport {
  /** Such as `botocore 1.44.5`: fields that came later are not known there. */
  version: string;
  operations: number;
  /** Of these; the others answer 501. */
  served: number;
}

export interface PublicAddress {
  address: string;
  problem?: string;
}

export interface DiskReport {
  free: number;
  /** Below this nothing new is written. */
  reserve: number;
  low: boolean;
  /** Disks of other places, by whose they are. */
  others?: (DiskReport & { of: string })[];
  /** The platform itself writes there; false where only agents do. */
  own?: boolean;
}

export type DatabaseReport = Pick<Provider, 'missing'> & { kind: string };

export type PolicyAnalysis = Pick<Provider, 'missing'> & { solver?: string };

export type SharedPlace = Pick<Provider, 'missing'> & { id: string; kind: string };

/** What a platform knows of itself, as far as doctor shows it. */
export type PlatformReport = Pick<
  DoctorReport,
  | 'platform'
  | 'model'
  | 'providers'
  | 'codeRuntimes'
  | 'sharedPlaces'
  | 'disk'
  | 'database'
  | 'publicAddress'
  | 'policyAnalysis'
  | 'restarts'
>;

/** Asks the platform what it found (`GET /_platform/doctor`: `{model: …, providers: ProbeReport[], codeRuntimes: string[], sharedPlaces: …, disk: …, database: …, policyAnalysis: …, restarts: number}`). */
export async function askPlatform(connection: Connection): Promise<PlatformReport> {
  const value = await adminJson(connection, { path: '/doctor', signal: AbortSignal.timeout(30_000) });
  const field = (name: string): unknown =>
    typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
  const providers = field('providers');
  const runtimes = field('codeRuntimes');
  const places = field('sharedPlaces');
  const disk = field('disk');
  const database = field('database');
  const publicAddress = field('publicAddress');
  const restarts = field('restarts');
  const model = field('model');
  const analysis = field('policyAnalysis');
  if (!Array.isArray(providers) || !providers.every(isProvider)) {
    throw new CliError('failure', 'The platform’s answer to doctor cannot be read. It may be a different version.');
  }
  return {
    platform: connection.endpoint,
    model: isModel(model) ? model : undefined,
    providers,
    codeRuntimes: Array.isArray(runtimes) ? runtimes.map(String) : undefined,
    // An older platform says nothing of them.
    sharedPlaces: Array.isArray(places) ? places.filter(isSharedPlace) : undefined,
    disk: isDisk(disk) ? disk : undefined,
    database: isDatabase(database) ? database : undefined,
    publicAddress: isPublicAddress(publicAddress) ? publicAddress : undefined,
    policyAnalysis: isPolicyAnalysis(analysis) ? analysis : undefined,
    restarts: typeof restarts === 'number' ? restarts : undefined,
  };
}

function isPublicAddress(value: unknown): value is PublicAddress {
  return typeof value === 'object' && value !== null && 'address' in value && typeof value.address === 'string';
}

function isPolicyAnalysis(value: unknown): value is PolicyAnalysis {
  if (typeof value !== 'object' || value === null || !('missing' in value)) return false;
  return Array.isArray(value.missing) && (!('solver' in value) || typeof value.solver === 'string');
}

function isProvider(value: unknown): value is Provider {
  if (typeof value !== 'object' || value === null) return false;
  const { provider, usable, isolation, missing, shared = [] } = value as Record<string, unknown>;
  return (
    typeof provider === 'string' &&
    typeof usable === 'boolean' &&
    typeof isolation === 'string' &&
    Array.isArray(missing) &&
    Array.isArray(shared)
  );
}

function isSharedPlace(value: unknown): value is SharedPlace {
  if (typeof value !== 'object' || value === null) return false;
  const { id, kind, missing } = value as Record<string, unknown>;
  return typeof id === 'string' && typeof kind === 'string' && Array.isArray(missing);
}

function isDatabase(value: unknown): value is DatabaseReport {
  if (typeof value !== 'object' || value === null) return false;
  const { kind, missing } = value as Record<string, unknown>;
  return typeof kind === 'string' && Array.isArray(missing);
}

function isDisk(value: unknown): value is DiskReport {
  if (typeof value !== 'object' || value === null) return false;
  const { free, reserve, low } = value as Record<string, unknown>;
  return typeof free === 'number' && typeof reserve === 'number' && typeof low === 'boolean';
}

function isModel(value: unknown): value is ModelReport {
  if (typeof value !== 'object' || value === null) return false;
  const { version, operations, served } = value as Record<string, unknown>;
  return typeof version === 'string' && typeof operations === 'number' && typeof served === 'number';
}
