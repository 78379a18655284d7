import {
  admitBySandbox,
  createHttpServer,
  type HttpServerDeps,
  LOOPBACK,
  TrustedAddresses,
} from './kernel/http/index.ts';

/** The listener that sandboxes reach. */
export interface SandboxEndpoint {
  port: number;
  close(): Promise<void>;
}

export interface SandboxEndpointParts extends Omit<HttpServerDeps, 'caps' | 'admit' | 'signedPass'> {
  /** What one sandbox may have of the endpoint that all share. */
  perSandbox: { connections: number; requestsPerSecond: number };
}

const GRACE_MS = 1000;

/** Opens a listener of its own for sandboxes, on the loopback interface: the operations, and the routes that are declared for it. */
export async function openSandboxEndpoint({ perSandbox, ...parts }: SandboxEndpointParts): Promise<SandboxEndpoint> {
  // Sandboxes come from addresses of their own, unless nothing isolates them: then they cannot be told apart.
  const trusted = new TrustedAddresses(LOOPBACK);
  const server = await createHttpServer({
    ...parts,
    caps: { perAddress: perSandbox.connections, trusted },
    admit: admitBySandbox(perSandbox.requestsPerSecond, trusted, parts.clock),
  });
  const { port } = await server.listen('127.0.0.1', 0);
  return { port, close: () => server.close(GRACE_MS) };
}
