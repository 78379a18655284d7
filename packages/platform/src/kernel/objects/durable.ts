import { open } from 'node:fs/promises';

/** Makes the names in `directory` durable; one that is gone meanwhile needs nothing. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  try {
    await handle?.sync();
  } finally {
    await handle?.close();
  }
}
