import { writeConnectionFile } from './connection-file.ts';
import { type Iam, PROFILE, writeCredentialsFile } from './kernel/auth/index.ts';

/** What the server prints when it serves; `connection.json` in the data directory holds the same. */
export interface Ready {
  ready: true;
  endpoint: string;
  credentialsFile: string;
  profile: string;
  region: string;
  accountId: string;
  defaultRoleArn: string;
  isolation: string;
  /** How often the server was started again because it had ended unasked; absent when never. */
  restarts?: number;
  /** TLS on the host names of the original, when it is on: where it is served, and the files that make clients believe it. */
  tls?: { address: string; port: number; hosts: string[]; caFile: string; bundleFile: string };
}

/** Writes the files by which clients on this machine find the server, and says what is in them; `endpoint` is where it listens. */
export async function announce(
  data: string,
  iam: Pick<Iam, 'rootCredentials' | 'accountId' | 'defaultRoleArn'>,
  { endpoint, region, isolation, restarts, tls }: Pick<Ready, 'endpoint' | 'region' | 'isolation' | 'restarts' | 'tls'>,
): Promise<Ready> {
  const credentialsFile = await writeCredentialsFile(data, { ...(await iam.rootCredentials()), region });
  const ready: Ready = {
    ready: true,
    endpoint: fromHere(endpoint),
    credentialsFile,
    profile: PROFILE,
    region,
    accountId: iam.accountId,
    defaultRoleArn: iam.defaultRoleArn,
    isolation,
    ...(restarts ? { restarts } : {}),
    ...(tls ? { tls } : {}),
  };
  await writeConnectionFile(data, ready);
  return ready;
}

/** Who listens on every address is met on the loopback interface; the address of all is none to call. */
function fromHere(endpoint: string): string {
  return endpoint.replace(/^(\w+:\/\/)(?:0\.0\.0\.0|\[::\])(?=:|$)/, (_, scheme: string) =>
    endpoint.includes('[') ? `${scheme}[::1]` : `${scheme}127.0.0.1`,
  );
}
