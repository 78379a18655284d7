import { type SignedParts, signedPlugins } from './http-plugins.ts';
import type { SandboxCredentials } from './kernel/auth/iam/sandbox-credentials.ts';
import { admitBySandbox } from './kernel/http/request-rates.ts';
import { createHttpServer, type HttpServerDeps } from './kernel/http/server.ts';
import { LOOPBACK, TrustedAddresses } from './kernel/http/trusted-addresses.ts';
import { sandboxCredentialsRoutes } from './services/iam/sandbox-credentials-routes.ts';

/** The listener that sandboxes reach. */
export interface Door {
  port: number;
  close(): Promise<void>;
}

export interface DoorParts extends Omit<HttpServerDeps, 'plugins' | 'caps' | 'admit' | 'signedPass'> {
  /** What one sandbox may have of the door that all share. */
  perSandbox: { connections: number; requestsPerSecond: number };
  credentials: SandboxCredentials;
  signed: SignedParts;
}

const GRACE_MS = 1000;

/**
 * Opens a listener of its own for sandboxes, on the loopback interface: what AWS SDKs sign, and the credentials to sign it with.
 * Administration, metrics and the registry are not behind it.
 */
export async function openDoor({ credentials, signed, perSandbox, ...parts }: DoorParts): Promise<Door> {
  // Sandboxes come from addresses of their own, unless nothing isolates them: then they cannot be told apart.
  const trusted = new TrustedAddresses(LOOPBACK);
  const server = await createHttpServer({
    ...parts,
    caps: { perAddress: perSandbox.connections, trusted },
    admit: admitBySandbox(perSandbox.requestsPerSecond, trusted, parts.clock),
    plugins: [sandboxCredentialsRoutes(credentials), ...signedPlugins(signed)],
  });
  const { port } = await server.listen('127.0.0.1', 0);
  return { port, close: () => server.close(GRACE_MS) };
}
