import { fromEnv } from '@aws-sdk/credential-provider-env';
import { fromIni } from '@aws-sdk/credential-provider-ini';
import type { Connection } from './connection.ts';

export interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

/** Resolves the keys to sign with: the connection's profile, else keys in the environment, else the default profile. */
export function credentialsOf(connection: Connection): () => Promise<Credentials> {
  const { credentialsFile, profile } = connection;
  const ini = fromIni({ ...(credentialsFile ? { filepath: credentialsFile } : {}), ...(profile ? { profile } : {}) });
  const first = profile ? ini : async () => fromEnv()().catch(() => ini());
  let known: Promise<Credentials> | undefined;
  return () => {
    known ??= first();
    return known;
  };
}
