import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** One file of public/: its content by hash, read only when it is to be written. */
export interface Output {
  readonly hash: string;
  /** The project name of the file it comes from, for messages; bundles name themselves. */
  readonly source: string;
  read(): Uint8Array;
}

/** An output whose content was made here. */
export function textOutput(source: string, text: string): Output {
  const bytes = Buffer.from(text, 'utf8');
  return { source, hash: contentHash(bytes), read: () => bytes };
}

/** An output that is the copy of a file; `file` is its path on this machine. */
export function copyOutput(source: string, file: string, hash: string): Output {
  return { source, hash, read: () => readFileSync(file) };
}

/** The name of a content; equal contents have equal names on every machine. */
export function contentHash(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 32);
}
