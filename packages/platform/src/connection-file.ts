import { join } from 'node:path';
import { replaceFile } from './kernel/durable-file.ts';

/** Writes `connection.json`, by which `agentcore` finds a server from any folder below; it holds no secret. */
export function writeConnectionFile(dataDir: string, connection: object): Promise<void> {
  return replaceFile(join(dataDir, 'connection.json'), `${JSON.stringify(connection, null, 2)}\n`);
}
