import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Writes `connection.json`, by which `agentcore` finds a server from any folder below; it holds no secret. */
export async function writeConnectionFile(dataDir: string, connection: object): Promise<void> {
  const path = join(dataDir, 'connection.json');
  await writeFile(`${path}.new`, `${JSON.stringify(connection, null, 2)}\n`, { mode: 0o600 });
  await rename(`${path}.new`, path);
}
