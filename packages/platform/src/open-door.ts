import { type SignedParts, signedPlugins } from './http-plugins.ts';
import type { SandboxCredentials } from './kernel/auth/iam/sandbox-credentials.ts';
import { sandboxCredentialsRoutes } from './kernel/auth/iam/sandbox-credentials-routes.ts';
import { createHttpServer, type HttpServerDeps } from './kernel/http/server.ts';

/** The listener that sandboxes reach. */
export interface Door {
  port: number;
  close(): Promise<void>;
}

export interface DoorParts extends Required<Omit<HttpServerDeps, 'plugins'>> {
  credentials: SandboxCredentials;
  signed: SignedParts;
}

const GRACE_MS = 1000;

/**
 * Opens a listener of its own for sandboxes, on the loopback interface: what AWS SDKs sign, and the credentials to sign it with.
 * Administration, metrics and the registry are not behind it.
 */
export async function openDoor({ credentials, signed, ...parts }: DoorParts): Promise<Door> {
  const server = await createHttpServer({
    ...parts,
    plugins: [sandboxCredentialsRoutes(credentials), ...signedPlugins(signed)],
  });
  const { port } = await server.listen('127.0.0.1', 0);
  return { port, close: () => server.close(GRACE_MS) };
}
