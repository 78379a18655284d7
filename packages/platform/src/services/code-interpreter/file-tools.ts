import type { data } from '@agentplatform/contract';
import { type HostEntry, HostRefusal, type KernelHost } from './kernel-host.ts';
import { mimeTypeOf } from './mime-types.ts';
import { textBlock } from './results.ts';

/** Bytes of files in one event: with base64 and frame it stays below what clients of event streams accept. */
export const MAX_READ_BYTES = 12 * 2 ** 20;

/** writeFiles: all that can be written are; one that cannot makes the result an error that names it. */
export async function writeFiles(
  host: KernelHost,
  files: readonly { path: string; bytes: Uint8Array }[],
): Promise<data.CodeInterpreterResult> {
  return each(files, async ({ path, bytes }) => {
    await host.write(path, bytes);
    return textBlock(`Wrote ${path} (${bytes.length} bytes).`);
  });
}

/** readFiles: text as text, what is no UTF-8 as blob. */
export async function readFiles(host: KernelHost, paths: readonly string[]): Promise<data.CodeInterpreterResult> {
  let left = MAX_READ_BYTES;
  return each(paths, async (path) => {
    const bytes = await host.read(path, left);
    left -= bytes.length;
    // The path as it was named: the vendor's client finds a file by what follows `file://`.
    const uri = `file://${path}`;
    const text = utf8(bytes);
    const mimeType = mimeTypeOf(path, text !== undefined);
    return {
      type: 'resource',
      resource:
        text === undefined ? { type: 'blob', uri, mimeType, blob: bytes } : { type: 'text', uri, mimeType, text },
    };
  });
}

export async function removeFiles(host: KernelHost, paths: readonly string[]): Promise<data.CodeInterpreterResult> {
  return each(paths, async (path) => {
    await host.remove(path);
    return textBlock(`Removed ${path}.`);
  });
}

/** listFiles: a link per entry. */
export async function listFiles(host: KernelHost, path: string): Promise<data.CodeInterpreterResult> {
  const [found] = await settle([path], (one) => host.list(one));
  if (found instanceof HostRefusal || !found) return { content: [textBlock(found?.message ?? '')], isError: true };
  const links = found.entries.map(linkTo);
  const more = found.more ? [textBlock(`Only the first ${found.entries.length} are listed.`)] : [];
  return { content: [...links, ...more], isError: false };
}

function linkTo(entry: HostEntry): data.ContentBlock {
  const description = { file: 'File', directory: 'Directory', link: 'Link' }[entry.kind];
  const { name, size, path } = entry;
  return {
    type: 'resource_link',
    uri: fileUri(path),
    name,
    description,
    size,
    ...(entry.kind === 'file' ? { mimeType: mimeTypeOf(name, true) } : {}),
  };
}

async function each<T>(
  items: readonly T[],
  run: (item: T) => Promise<data.ContentBlock>,
): Promise<data.CodeInterpreterResult> {
  const outcomes = await settle(items, run);
  return {
    content: outcomes.map((outcome) => (outcome instanceof HostRefusal ? textBlock(outcome.message) : outcome)),
    isError: outcomes.some((outcome) => outcome instanceof HostRefusal),
  };
}

/** One after the other; a refusal is an outcome, anything else ends the call. */
async function settle<T, R>(items: readonly T[], run: (item: T) => Promise<R>): Promise<(R | HostRefusal)[]> {
  const outcomes: (R | HostRefusal)[] = [];
  for (const item of items) {
    try {
      outcomes.push(await run(item));
    } catch (error) {
      if (!(error instanceof HostRefusal)) throw error;
      outcomes.push(error);
    }
  }
  return outcomes;
}

function fileUri(path: string): string {
  return `file:///${path.split('/').filter(Boolean).map(encodeURIComponent).join('/')}`;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function utf8(bytes: Uint8Array): string | undefined {
  // A NUL is valid UTF-8 and no text.
  if (bytes.includes(0)) return undefined;
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}
