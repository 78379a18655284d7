// The session's own store: what the browser has downloaded. Its quota is that of the sandbox's disk.
import { createReadStream } from 'node:fs';
import { mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';

export const DOWNLOADS = '/home/agent/downloads';
const MOST = 1000;

/** Answers with the file of that name, or with the list of all of them. */
export async function sendFile(name, response) {
  const json = (status, body) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  try {
    await mkdir(DOWNLOADS, { recursive: true });
    if (name === null) return json(200, { files: await list() });
    if (name.includes('/') || name.includes('\0') || name === '..' || name === '.')
      return json(400, { message: 'A download is named by its file name alone.' });
    const { size } = await stat(join(DOWNLOADS, name));
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': size });
    await pipeline(createReadStream(join(DOWNLOADS, name), { end: Math.max(0, size - 1) }), response);
  } catch (error) {
    if (response.headersSent) response.destroy();
    else json(error.code === 'ENOENT' ? 404 : 500, { message: `There is no download ${name}.` });
  }
}

async function list() {
  const names = (await readdir(DOWNLOADS)).slice(0, MOST);
  const files = await Promise.all(
    names.map(async (name) => {
      const info = await stat(join(DOWNLOADS, name)).catch(() => undefined);
      // Chromium's own name for what is still on its way.
      return info?.isFile() ? [{ name, size: info.size, complete: !name.endsWith('.crdownload') }] : [];
    }),
  );
  return files.flat();
}
