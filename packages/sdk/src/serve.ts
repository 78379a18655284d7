import { once } from 'node:events';
import type { Server } from 'node:http';

export interface RunningApp {
  readonly port: number;
  readonly url: string;
  /** Stops listening, lets requests in flight finish for the grace time, then cuts them. Idempotent. */
  close(): Promise<void>;
}

/** Listens and ties the server's life to SIGTERM and SIGINT, after which the process exits with 0. */
export async function serve(
  server: Server,
  options: { port: number; host: string; graceMs: number; onClose?: (() => void) | undefined },
): Promise<RunningApp> {
  // Longer than any pooling client keeps an idle connection, so that it is never us who closes one just being reused.
  server.keepAliveTimeout = 75_000;
  server.headersTimeout = 80_000;
  const listening = once(server, 'listening');
  server.listen(options.port, options.host);
  await listening.catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error;
    throw new Error(`Port ${options.port} is in use; end what listens there, or set PORT to another one.`, {
      cause: error,
    });
  });
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : options.port;

  let closed: Promise<void> | undefined;
  // A kept-alive connection whose last answer went out after `close` would otherwise idle through the grace time.
  server.on('request', (_request, response) => {
    response.once('close', () => setImmediate(() => closed && server.closeIdleConnections()));
  });
  const close = (): Promise<void> => {
    if (!closed) options.onClose?.();
    closed ??= closeGently(server, options.graceMs).finally(() => {
      process.off('SIGTERM', exit);
      process.off('SIGINT', exit);
    });
    return closed;
  };
  // Exits by itself: a forgotten timer or open database pool must not hold a session that is to end.
  const exit = (): void => void close().finally(() => process.exit(0));
  process.on('SIGTERM', exit);
  process.on('SIGINT', exit);
  return { port, url: `http://${options.host === '0.0.0.0' ? '127.0.0.1' : options.host}:${port}`, close };
}

async function closeGently(server: Server, graceMs: number): Promise<void> {
  const done = once(server, 'close');
  server.close();
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), graceMs);
  await done;
  clearTimeout(timer);
}
