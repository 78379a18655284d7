import type { Dispatcher } from 'undici';
import { errorCode } from '../system-error.ts';
import { untilAborted } from '../until-aborted.ts';

/** What a session's own health route says: healthy, or healthy and busy with work that no request shows. */
export type Health = 'healthy' | 'busy';

/** Asks one sandbox how it is. Rejects when it does not answer well; `HealthFailure.refused` tells a closed port from a slow answer. */
export type HealthCheck = (connection: Dispatcher, signal: AbortSignal) => Promise<Health>;

export class HealthFailure extends Error {
  /** True when nothing listens on the port: no amount of patience with a busy agent explains that. */
  readonly refused: boolean;
  /** What it answered, if it did. */
  readonly statusCode: number | undefined;
  constructor(message: string, refused: boolean, options?: { cause?: unknown; statusCode?: number }) {
    super(message, options);
    this.name = 'HealthFailure';
    this.refused = refused;
    this.statusCode = options?.statusCode;
  }
}

const MAX_PING_BYTES = 16_384;

/** The runtime container's contract: `GET /ping` answers 2xx, with `{"status":"Healthy"|"HealthyBusy"}` when it has something to say. */
export async function pingHealth(connection: Dispatcher, signal: AbortSignal): Promise<Health> {
  const { statusCode, body } = await untilAborted(
    connection.request({ method: 'GET', path: '/ping', signal }),
    signal,
  ).catch((error: unknown) => {
    throw new HealthFailure(`GET /ping: ${describe(error)}`, isRefused(error), { cause: error });
  });
  let text = '';
  try {
    for await (const chunk of body) {
      text += chunk;
      if (text.length > MAX_PING_BYTES) throw new Error(`the answer is longer than ${MAX_PING_BYTES} bytes`);
    }
  } catch (error) {
    throw new HealthFailure(`GET /ping: ${describe(error)}`, false, { cause: error });
  }
  if (statusCode < 200 || statusCode > 299)
    throw new HealthFailure(`GET /ping answered ${statusCode}`, false, { statusCode });
  return statusOf(text) === 'HealthyBusy' ? 'busy' : 'healthy';
}

/** For protocols whose containers need not have `/ping`: one that does not know the route lives all the same. */
export async function optionalPingHealth(connection: Dispatcher, signal: AbortSignal): Promise<Health> {
  try {
    return await pingHealth(connection, signal);
  } catch (error) {
    const status = error instanceof HealthFailure ? (error.statusCode ?? 500) : 500;
    if (status >= 500) throw error;
    return 'healthy';
  }
}

function statusOf(text: string): unknown {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null && 'status' in parsed ? parsed.status : undefined;
  } catch {
    // A ping that answers 200 with plain text is healthy: the contract asks for an answer, not for JSON.
    return undefined;
  }
}

function isRefused(error: unknown): boolean {
  const code = errorCode(error);
  return code === 'ECONNREFUSED' || code === 'EHOSTUNREACH';
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
