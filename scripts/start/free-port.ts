import { createServer } from 'node:net';
import { portTaken } from '../../packages/platform/src/port-owner.ts';

/** Rejects, naming who has it if that can be seen, when nobody can listen on `port` now. 0 is always free. */
export async function freePort(host: string, port: number): Promise<void> {
  if (port === 0) return;
  try {
    await new Promise<void>((resolve, reject) => {
      const server = createServer();
      server.once('error', reject);
      server.listen({ host, port, exclusive: true }, () => server.close(() => resolve()));
    });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EADDRINUSE') throw new Error(await portTaken(port));
    throw new Error(`Cannot listen on ${host}:${port}: ${error instanceof Error ? error.message : error}`);
  }
}
