import { readFile, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { CliError } from '../cli-error.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** Where a platform is and how to sign in there. */
export interface Connection {
  /** Without a slash at its end. */
  endpoint: string;
  region: string;
  /** A shared-credentials file; undefined: where the AWS SDKs look by themselves. */
  credentialsFile: string | undefined;
  profile: string | undefined;
  accountId: string | undefined;
  defaultRoleArn: string | undefined;
  /** TLS on the host names of the original, when the platform serves it. */
  tls?: { address: string; port: number; hosts: string[]; caFile: string; bundleFile: string };
  /** In words, for messages: `--endpoint`, `AWS_ENDPOINT_URL`, or the file. */
  source: string;
}

export interface ConnectionFlags {
  endpoint?: string;
  profile?: string;
}

type Place = Pick<Terminal, 'env' | 'cwd' | 'home'>;

const endpointVariables = [
  'AWS_ENDPOINT_URL_BEDROCK_AGENTCORE',
  'AWS_ENDPOINT_URL_BEDROCK_AGENTCORE_CONTROL',
  'AWS_ENDPOINT_URL',
];

/**
 * Finds the platform: --endpoint, then the environment, then `.agentplatform/connection.json` here or in a folder above,
 * then in the home folder. In the environment the connection file beside AWS_SHARED_CREDENTIALS_FILE
 * counts, too, by itself or to complete an address. Rejects with a `CliError` (unreachable) when there is none.
 */
export async function findConnection(place: Place, flags: ConnectionFlags): Promise<Connection> {
  const variable = endpointVariables.find((name) => place.env[name]);
  const named = flags.endpoint ?? (variable ? place.env[variable] : undefined);
  // Where the environment names no address, it may still name the platform's credentials file.
  const file = (named === undefined ? await besideCredentials(place) : undefined) ?? (await nearestFile(place));
  if (named === undefined && !file) {
    throw new CliError(
      'unreachable',
      'No platform was found: there is no .agentplatform/connection.json here, above, or in your home folder.',
      'Start one with "npm start" or "npm run platform" in the platform’s folder, or name one with --endpoint URL or AWS_ENDPOINT_URL.',
    );
  }
  const endpoint =
    named === undefined ? undefined : cleanEndpoint(named, flags.endpoint ? '--endpoint' : (variable ?? ''));
  const known = [file, endpoint ? await besideCredentials(place) : undefined].find(
    (candidate) => candidate && (endpoint === undefined || endpoint === candidate.endpoint),
  );
  if (known) {
    // Keys that the user put into the environment next to the address are meant; the file only fills in what is missing.
    const own = endpoint !== undefined && hasOwnCredentials(place.env, known.credentialsFile);
    return {
      ...known,
      credentialsFile: own ? place.env.AWS_SHARED_CREDENTIALS_FILE : known.credentialsFile,
      profile: flags.profile ?? (own ? place.env.AWS_PROFILE : known.profile),
    };
  }
  return {
    endpoint: endpoint ?? '',
    region: place.env.AWS_REGION ?? place.env.AWS_DEFAULT_REGION ?? 'us-east-1',
    credentialsFile: place.env.AWS_SHARED_CREDENTIALS_FILE,
    profile: flags.profile ?? place.env.AWS_PROFILE,
    accountId: place.env.AWS_ACCOUNT_ID,
    defaultRoleArn: undefined,
    source: flags.endpoint ? '--endpoint' : (variable ?? ''),
  };
}

// The platform's own credentials file names no keys of the user's: the profile in it is known.
function hasOwnCredentials(env: Place['env'], known: string | undefined): boolean {
  const file = env.AWS_SHARED_CREDENTIALS_FILE;
  return Boolean(env.AWS_ACCESS_KEY_ID || (file && file !== known) || env.AWS_PROFILE);
}

function cleanEndpoint(text: string, source: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    throw new CliError(
      'usage',
      `${source} is ${JSON.stringify(text)}, not a URL.`,
      'Write it like http://127.0.0.1:4100',
    );
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

async function nearestFile(place: Place): Promise<Connection | undefined> {
  for (let folder = resolve(place.cwd); ; folder = dirname(folder)) {
    const found = await readConnection(join(folder, '.agentplatform', 'connection.json'));
    if (found) return found;
    if (folder === dirname(folder)) break;
  }
  return readConnection(join(place.home, '.agentplatform', 'connection.json'));
}

// The server writes both files into one folder, so whoever was given the credentials also knows the rest.
async function besideCredentials(place: Place): Promise<Connection | undefined> {
  const file = place.env.AWS_SHARED_CREDENTIALS_FILE;
  return file ? readConnection(join(dirname(file), 'connection.json')) : undefined;
}

async function readConnection(path: string): Promise<Connection | undefined> {
  const info = await stat(path).catch(() => undefined);
  if (!info) return undefined;
  // Found by walking up from wherever the user stands: another user's file there must not choose where requests go.
  if (process.getuid && info.uid !== process.getuid() && info.uid !== 0) {
    throw new CliError(
      'denied',
      `${path} belongs to another user, so it is not trusted.`,
      'Name the platform with --endpoint URL.',
    );
  }
  const bad = (what: string): CliError =>
    new CliError('failure', `${path} ${what}.`, 'Start the platform again; it writes this file when it is ready.');
  let value: unknown;
  try {
    value = JSON.parse(await readFile(path, 'utf8'));
  } catch {
    throw bad('is not valid JSON');
  }
  const text = (name: string): string | undefined => {
    const field = typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
    return typeof field === 'string' && field !== '' ? field : undefined;
  };
  const endpoint = text('endpoint');
  if (!endpoint || !URL.canParse(endpoint)) throw bad('names no endpoint');
  return {
    endpoint: endpoint.replace(/\/+$/, ''),
    region: text('region') ?? 'us-east-1',
    credentialsFile: text('credentialsFile'),
    profile: text('profile'),
    accountId: text('accountId'),
    defaultRoleArn: text('defaultRoleArn'),
    ...readTls(value),
    source: path,
  };
}

function readTls(value: unknown): Pick<Connection, 'tls'> {
  const tls: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, 'tls') : undefined;
  if (typeof tls !== 'object' || tls === null) return {};
  const { address, port, hosts, caFile, bundleFile } = tls as Record<string, unknown>;
  if (typeof address !== 'string' || typeof port !== 'number' || !Array.isArray(hosts)) return {};
  if (typeof caFile !== 'string' || typeof bundleFile !== 'string') return {};
  return { tls: { address, port, hosts: hosts.map(String), caFile, bundleFile } };
}
