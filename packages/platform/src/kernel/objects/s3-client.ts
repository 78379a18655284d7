import { Readable } from 'node:stream';
import { S3Client } from '@aws-sdk/client-s3';
import type { Clock } from '../clock.ts';
import { boundedBody } from '../outbound/index.ts';

export interface S3ClientOptions {
  endpoint: string;
  region: string;
  /** Those of the environment when absent. */
  credentials?: { accessKeyId: string; secretAccessKey: string };
  clock: Clock;
  /** Time limit of an answer in milliseconds: to begin, and to end, except for the content of an object. */
  answerMs?: number;
  /** How long nothing may come while the content of an object is read, in milliseconds. */
  idleMs?: number;
}

const CONNECT_MS = 10_000;
const ANSWER_MS = 30_000;
const IDLE_MS = 60_000;
/** Many times what a list of a thousand keys takes. */
const MAX_ANSWER = 8_000_000;

/**
 * A client of the S3 endpoint that the operator configured. What it answers is bounded in time and in bytes, but for the contents of
 * objects, which are streamed: the SDK itself would wait for ever, and keep in memory whatever comes. `close` ends what is under way.
 */
export function openS3Client({ clock, answerMs = ANSWER_MS, idleMs = IDLE_MS, ...options }: S3ClientOptions): {
  client: S3Client;
  close(): void;
} {
  const client = new S3Client({
    ...options,
    forcePathStyle: true,
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      requestTimeout: answerMs,
      throwOnRequestTimeout: true,
      socketTimeout: idleMs,
    },
  });
  let closed = false;
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        // The SDK would try again what the end has cut short.
        if (closed) throw new Error('the client of the object store is closed');
        const output = await next(args);
        const { response } = output;
        if (isAnswer(response) && !(commandName === 'GetObjectCommand' && response.statusCode < 300))
          response.body = bounded(response.body, clock, answerMs);
        return output;
      },
    // Nearest to the connection, before anything reads the answer.
    { name: 'boundAnswers', step: 'deserialize', priority: 'low' },
  );
  return {
    client,
    close() {
      closed = true;
      client.destroy();
    },
  };
}

function isAnswer(response: unknown): response is { statusCode: number; body: Readable } {
  return (
    typeof response === 'object' &&
    response !== null &&
    'statusCode' in response &&
    'body' in response &&
    response.body instanceof Readable
  );
}

function bounded(source: Readable, clock: Clock, answerMs: number): Readable {
  const body = boundedBody(source, undefined, MAX_ANSWER, (error) => error);
  const cancel = clock.after(answerMs, () => body.destroy(new Error('the object store did not finish its answer')));
  return body.once('close', cancel);
}
