import type { Outbound } from '../outbound/index.ts';
import { trimEnd } from '../trim-end.ts';
import { errorOfStatus, ModelError, unreachable } from './model-error.ts';

/** An OpenAI-compatible service that the operator of the platform has chosen. */
export interface ModelEndpoint {
  /** The base URL, e.g. `http://localhost:11434/v1`. */
  url: string;
  model: string;
  apiKey?: string;
  /** The operator's way out: the service may be on a private address. */
  outbound: Pick<Outbound, 'fetch'>;
}

/** The endpoint that settings name. */
export function modelEndpoint(
  url: string,
  { name, key }: { name: string; key: string | undefined },
  outbound: Pick<Outbound, 'fetch'>,
): ModelEndpoint {
  return { url, model: name, outbound, ...(key === undefined ? {} : { apiKey: key }) };
}

/** Some hundred vectors as text; a thousand times what a model says at a time. */
const MAX_ANSWER = 8_000_000;
const TIMEOUT_MS = 60_000;

/** POSTs JSON below the endpoint's base and gives the JSON object that comes back. Throws `ModelError`, or the signal's own reason. */
export async function postJson(
  { url, apiKey, outbound }: ModelEndpoint,
  path: string,
  body: object,
  signal?: AbortSignal,
): Promise<Record<string, unknown>> {
  const answer = await readAnswer(
    outbound.fetch(`${trimEnd(url, '/')}/${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      },
      body: JSON.stringify(body),
      maxBytes: MAX_ANSWER,
      timeoutMs: TIMEOUT_MS,
      // The key is for this service alone.
      redirects: 0,
      ...(signal ? { signal } : {}),
    }),
    signal,
  );
  if (answer.status !== 200) throw errorOfStatus(answer.status, answer.text, apiKey);
  const value = objectIn(answer.text);
  if (!value) throw new ModelError('the service of the model answered with something that is not a JSON object');
  return value;
}

async function readAnswer(
  call: ReturnType<Outbound['fetch']>,
  signal: AbortSignal | undefined,
): Promise<{ status: number; text: string }> {
  try {
    const answer = await call;
    return { status: answer.status, text: await answer.text() };
  } catch (cause) {
    signal?.throwIfAborted();
    throw unreachable(cause);
  }
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
