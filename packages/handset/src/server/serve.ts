import { createServer, type RequestListener, type Server } from 'node:http';
import { ProblemError } from '../problem.ts';
import { type Bound, listen } from './listen.ts';

/** HTTP that is being served until it is closed. */
export interface Served extends Bound {
  close(): Promise<void>;
}

/**
 * Serve HTTP on `host` (port 0 asks for any). `localhost` is 127.0.0.1 and ::1, for which browsers may take it; where there
 * is no IPv6, 127.0.0.1 alone. Throws as `listen` does.
 */
export async function serve(handler: RequestListener, host: string, port: number): Promise<Served> {
  // Until they listen `listen` hears their errors, too; afterwards it is a connection that could not be taken, and the next one can.
  const server = createServer(handler).on('error', () => undefined);
  const second = createServer(handler).on('error', () => undefined);
  // This one first: as long as nothing of ours has the port, whoever is named as its owner is somebody else.
  const other = host === 'localhost' ? await listen(second, '::1', port).catch(unlessInUse) : undefined;
  const close = async (): Promise<void> => {
    await Promise.all([closeServer(server), closeServer(second)]);
  };
  try {
    const { address, port: bound } = await listen(server, host, other?.port ?? port);
    return { address, port: bound, close };
  } catch (error) {
    await close();
    // Any port would do, and the one that was free on ::1 is not free on 127.0.0.1.
    if (port === 0 && other && isInUse(error)) return serve(handler, host, port);
    throw error;
  }
}

function unlessInUse(error: unknown): undefined {
  if (isInUse(error)) throw error;
}

function isInUse(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.code === 'port-in-use';
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
