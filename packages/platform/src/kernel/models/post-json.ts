import { request } from 'undici';

/** An OpenAI-compatible service that the operator of the platform has chosen. */
export interface ModelEndpoint {
  /** The base URL, e.g. `http://localhost:11434/v1`. */
  url: string;
  model: string;
  apiKey?: string;
  timeoutMs?: number;
}

/** The endpoint that settings name. */
export function modelEndpoint(url: string, { name, key }: { name: string; key: string | undefined }): ModelEndpoint {
  return { url, model: name, ...(key === undefined ? {} : { apiKey: key }) };
}

/** The service did not answer, or not with what was asked for. */
export class ModelError extends Error {
  override name = 'ModelError';
}

const MAX_ANSWER = 32_000_000;

/** POSTs JSON below the endpoint's base and gives the JSON that comes back. Throws `ModelError`; never names the key. */
export async function postJson(
  endpoint: ModelEndpoint,
  path: string,
  body: object,
  signal?: AbortSignal,
): Promise<unknown> {
  const url = `${endpoint.url.replace(/\/+$/, '')}/${path}`;
  const timeout = AbortSignal.timeout(endpoint.timeoutMs ?? 60_000);
  try {
    const answer = await request(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(endpoint.apiKey === undefined ? {} : { authorization: `Bearer ${endpoint.apiKey}` }),
      },
      body: JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    const parts: Buffer[] = [];
    let size = 0;
    for await (const part of answer.body) {
      size += part.length;
      if (size > MAX_ANSWER) throw new ModelError(`${url} answered with more than ${MAX_ANSWER} bytes`);
      parts.push(part);
    }
    const text = Buffer.concat(parts).toString('utf8');
    if (answer.statusCode !== 200) throw new ModelError(`${url} answered ${answer.statusCode}: ${text.slice(0, 300)}`);
    return JSON.parse(text);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof ModelError) throw error;
    throw new ModelError(`${url}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}
