import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { S3Client } from '@aws-sdk/client-s3';

/** Where a recording lies: `s3://BUCKET/PREFIX/`. */
export interface RecordingLocation {
  bucket: string;
  /** With a slash at its end. */
  prefix: string;
}

/** Reads `s3://…`; undefined for anything else. */
export function recordingLocation(uri: string): RecordingLocation | undefined {
  const [, bucket, path] = /^s3:\/\/([a-z0-9.-]{3,63})\/(.*)$/.exec(uri) ?? [];
  if (bucket === undefined || path === undefined) return undefined;
  return { bucket, prefix: path === '' || path.endsWith('/') ? path : `${path}/` };
}

const TEMPLATES = join(import.meta.dirname, '../../templates/replay');

/** Writes one file that plays the recording in any browser, without a network; gives how many segments it has. Rejects with the errors of S3. */
export async function writeReplay(client: S3Client, from: RecordingLocation, file: string): Promise<number> {
  const keys = await segmentsOf(client, from);
  if (keys.length === 0) return 0;
  const [markup = '', style = '', script = ''] = await Promise.all(
    ['replay.html', 'replay.css', 'replay.js'].map((name) => readFile(join(TEMPLATES, name), 'utf8')),
  );
  const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  const policy = `default-src 'none'; img-src data:; style-src ${hash(style)}; script-src ${hash(script)}`;
  const { GetObjectCommand } = await import('@aws-sdk/client-s3');
  const page = async function* (): AsyncGenerator<string> {
    yield `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Recording of a browser session</title>
<meta http-equiv="Content-Security-Policy" content="${policy}"><style>${style}</style></head><body>${markup}`;
    for (const Key of keys) {
      const { Body } = await client.send(new GetObjectCommand({ Bucket: from.bucket, Key }));
      const json = (await Body?.transformToString()) ?? '{"entries":[]}';
      // What pages have said stays data: no tag of it ends the element.
      yield `\n<script type="application/json" class="segment">${json.replaceAll('<', '\\u003c')}</script>`;
    }
    yield `\n<script>${script}</script></body></html>\n`;
  };
  await pipeline(page, createWriteStream(file, { mode: 0o600 }));
  return keys.length;
}

async function segmentsOf(client: S3Client, { bucket, prefix }: RecordingLocation): Promise<string[]> {
  const { ListObjectsV2Command } = await import('@aws-sdk/client-s3');
  const keys: string[] = [];
  let ContinuationToken: string | undefined;
  do {
    const wanted = { Bucket: bucket, Prefix: `${prefix}segments/`, ContinuationToken };
    const page = await client.send(new ListObjectsV2Command(wanted));
    keys.push(...(page.Contents ?? []).flatMap(({ Key }) => Key ?? []));
    ContinuationToken = page.NextContinuationToken;
  } while (ContinuationToken !== undefined);
  return keys;
}
