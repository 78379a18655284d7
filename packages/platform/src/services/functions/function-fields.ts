import { errors } from '@agentplatform/contract';
import type { FunctionSettings } from './function.ts';
import { functionRuntime, functionRuntimes } from './function-runtimes.ts';

/** Why fields of the wire are not served; none is kept without effect. An empty value asks for nothing. */
const REFUSED: Readonly<Record<string, string>> = {
  Publish: 'is not offered: versions and aliases are not served',
  PublishTo: 'is not offered: versions and aliases are not served',
  VpcConfig: 'is not offered: the network of sandboxes is a setting of the platform',
  DeadLetterConfig: 'is not offered: events are not queued',
  KMSKeyArn: 'is not offered',
  TracingConfig: 'is not offered: the platform sends its spans itself',
  Tags: 'are not offered on functions',
  Layers: 'are not offered: put what a layer holds into the zip',
  FileSystemConfigs: 'are not offered',
  CodeSigningConfigArn: 'is not offered',
  ImageConfig: 'is not offered: code comes as a zip',
  EphemeralStorage: 'is not offered: the disk of sandboxes is the setting sandbox.limits.diskBytes',
  SnapStart: 'is not offered',
  LoggingConfig: 'is not offered',
  TenancyConfig: 'is not offered',
  CapacityProviderConfig: 'is not offered',
  DurableConfig: 'is not offered',
  RuntimeConfig: 'is not offered',
  AcceleratorConfig: 'is not offered',
  ImageUri: 'is not offered: code comes as a zip',
  SourceKMSKeyArn: 'is not offered',
  S3ObjectStorageMode: 'is not offered',
  DryRun: 'is not offered',
};

/** Names that decide how the platform and the interpreter run a function. */
const RESERVED =
  /^(?:_HANDLER|_X_AMZN_TRACE_ID|LAMBDA_|AGENTPLATFORM_|AWS_(?:LAMBDA_|EXECUTION_ENV$|REGION$|DEFAULT_REGION$|ENDPOINT_URL|CONTAINER_|ACCESS_KEY|ACCESS_KEY_ID$|SECRET_ACCESS_KEY$|SESSION_TOKEN$))/;
const VARIABLE = /^[a-zA-Z][a-zA-Z0-9_]+$/;
/** Of all variables together, as the original has it. */
const MAX_ENVIRONMENT_BYTES = 4096;

export type Members = Readonly<Record<string, unknown>>;

/** Throws ValidationException that names a field that is not served, or not known. */
export function refuseFields(call: Members, served: readonly string[], at = ''): void {
  for (const [name, value] of Object.entries(call)) {
    if (served.includes(name) || isNothing(value)) continue;
    throw errors.invalidField(`${at}${name}`, REFUSED[name] ?? 'is not a field that is served here');
  }
}

function isNothing(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === '') return true;
  if (typeof value !== 'object') return false;
  return Object.values(value).every(isNothing);
}

/** What a function is where the call says nothing. */
export const DEFAULTS = { description: '', timeoutSeconds: 3, memoryMiB: 128, environment: {} };

/** The settings that a call gives; absent ones are left out. `mostMemoryMiB` is what one sandbox may have here. Throws ValidationException. */
export function readSettings(call: Members, mostMemoryMiB: number): Partial<FunctionSettings> {
  const { Description, Runtime, Handler, Role, Timeout, MemorySize, Environment } = call;
  const runtime = text('Runtime', Runtime, 64);
  if (runtime !== undefined && !functionRuntime(runtime))
    throw errors.invalidField('Runtime', `must be one of ${functionRuntimes.join(', ')}`);
  const handler = text('Handler', Handler, 128);
  if (handler !== undefined && !/^[^\s./][^\s]*\.[^\s./]+$/.test(handler))
    throw errors.invalidField('Handler', 'must be FILE.NAME, such as index.handler');
  const role = text('Role', Role, 2048);
  const description = text('Description', Description, 256);
  const timeoutSeconds = integer('Timeout', Timeout, 1, 900);
  const memoryMiB = integer('MemorySize', MemorySize, 128, mostMemoryMiB);
  const environment = readEnvironment(Environment);
  return {
    ...(runtime !== undefined && { runtime }),
    ...(handler !== undefined && { handler }),
    ...(role !== undefined && { role }),
    ...(description !== undefined && { description }),
    ...(timeoutSeconds !== undefined && { timeoutSeconds }),
    ...(memoryMiB !== undefined && { memoryMiB }),
    ...(environment && { environment }),
  };
}

function readEnvironment(given: unknown): Record<string, string> | undefined {
  if (given === undefined || given === null) return undefined;
  const field = 'Environment.Variables';
  const { Variables = {}, ...more } = members('Environment', given);
  refuseFields(more, [], 'Environment.');
  const variables: Record<string, string> = {};
  for (const [name, value] of Object.entries(members(field, Variables))) {
    if (!VARIABLE.test(name)) throw errors.invalidField(field, `has a name that is none: ${name.slice(0, 100)}`);
    if (RESERVED.test(name)) throw errors.invalidField(`${field}.${name}`, 'is the platform’s own');
    if (typeof value !== 'string' || value.includes('\0'))
      throw errors.invalidField(`${field}.${name}`, 'must be a text');
    if (value.startsWith('secretref:'))
      throw errors.invalidField(`${field}.${name}`, 'refers to a secret, which is not offered for functions');
    variables[name] = value;
  }
  if (Buffer.byteLength(JSON.stringify(variables)) > MAX_ENVIRONMENT_BYTES)
    throw errors.invalidField(field, `must be at most ${MAX_ENVIRONMENT_BYTES} bytes together`);
  return variables;
}

/** An object of JSON. Throws ValidationException for anything else. */
export function members(field: string, value: unknown): Members {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  throw errors.invalidField(field, 'must be an object');
}

/** A text of a call; undefined where there is none. Throws ValidationException. */
export function text(field: string, value: unknown, most: number): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string' && value.length <= most) return value;
  throw errors.invalidField(field, `must be a text of at most ${most} characters`);
}

function integer(field: string, value: unknown, least: number, most: number): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  throw errors.invalidField(field, `must be from ${least} to ${most}`);
}
