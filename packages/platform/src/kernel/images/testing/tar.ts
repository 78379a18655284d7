import { type Header, pack } from 'tar-stream';

export interface TarEntry extends Partial<Omit<Header, 'pax'>> {
  name: string;
  content?: string | Uint8Array;
  pax?: Record<string, string>;
}

/** The bytes of a tar with these entries, for tests. */
export async function tar(entries: readonly TarEntry[]): Promise<Buffer> {
  const packer = pack();
  for (const { content, ...header } of entries) {
    const full = { mtime: new Date(1_700_000_000_000), type: 'file' as const, ...header };
    if (full.type === 'file') packer.entry(full, Buffer.from(content ?? ''));
    else packer.entry(full);
  }
  packer.finalize();
  const chunks: Uint8Array[] = [];
  for await (const chunk of packer) if (chunk instanceof Uint8Array) chunks.push(chunk);
  return Buffer.concat(chunks);
}
