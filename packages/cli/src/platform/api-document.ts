import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ApiSchemaConfiguration } from '@aws-sdk/client-bedrock-agentcore-control';
import { CliError } from '../cli-error.ts';
import { whyNoAnswer } from '../explain.ts';
import { objectClient } from './clients.ts';
import type { Connection } from './connection.ts';
import { wholeDocument } from './whole-document.ts';

const BUCKET = 'agentplatform-deploy';
/** What a call to the platform carries; larger documents go through the object storage. */
const MOST_INLINE = 512 * 1024;

/** The text of a document, and a name for what is made of it. */
export interface ApiDocument {
  text: string;
  name: string;
}

/** Reads a document from a file or an http(s) address. Rejects with a `CliError`. */
export async function readApiDocument(from: string, cwd: string, signal: AbortSignal): Promise<ApiDocument> {
  const name = basename(from.replace(/[?#].*$/, '')).replace(/\.(json|ya?ml)$/i, '');
  try {
    const isAddress = /^https?:\/\//i.test(from);
    const at = isAddress ? new URL(from) : pathToFileURL(resolve(cwd, from));
    if (!isAddress) return { text: await wholeDocument(await readFile(at, 'utf8'), at), name };
    const answer = await fetch(at, { signal });
    if (!answer.ok) throw new Error(`it answers ${answer.status}`);
    return { text: await wholeDocument(await answer.text(), new URL(answer.url)), name };
  } catch (error) {
    if (error instanceof CliError) throw error;
    const message = whyNoAnswer(error) ?? (error instanceof Error ? error.message : String(error));
    throw new CliError('usage', `The document ${from} cannot be read: ${message}`, undefined, { cause: error });
  }
}

/** How the document goes into a call: as it is, or by way of the object storage when it is large. An `s3://` location stays one. */
export async function schemaOf(
  connection: Connection,
  { text, name }: ApiDocument,
  signal: AbortSignal,
): Promise<ApiSchemaConfiguration> {
  if (Buffer.byteLength(text) <= MOST_INLINE) return { inlinePayload: text };
  const key = `documents/${name}-${createHash('sha256').update(text).digest('hex')}`;
  await putDocument(connection, { bucket: BUCKET, key, text }, signal);
  return { s3: { uri: `s3://${BUCKET}/${key}` } };
}

/** Puts a document into a bucket of the platform, which is made where it is missing. */
export async function putDocument(
  connection: Connection,
  { bucket: Bucket, key: Key, text: Body }: { bucket: string; key: string; text: string },
  signal: AbortSignal,
): Promise<void> {
  const { CreateBucketCommand, PutObjectCommand } = await import('@aws-sdk/client-s3');
  const client = await objectClient(connection);
  const put = (): Promise<unknown> => client.send(new PutObjectCommand({ Bucket, Key, Body }), { abortSignal: signal });
  await put().catch(async (error: unknown) => {
    if (!(error instanceof Error) || error.name !== 'NoSuchBucket') throw error;
    await client.send(new CreateBucketCommand({ Bucket }), { abortSignal: signal });
    await put();
  });
}
