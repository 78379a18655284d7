import { errors, type StreamingBlob } from '@agentplatform/contract';
import { CHAT_COMPLETIONS } from './chat-completions.ts';
import type { ClientFormat } from './client-format.ts';
import type { Members } from './json-body.ts';
import { MESSAGES } from './messages.ts';

/** The model's own limit of a body. */
const MAX_BYTES = 25_000_000;

/**
 * The JSON object in the body of InvokeModel, for whose parts `ctx` takes memory. Rejects with ValidationException for what is none, and for a
 * guardrail, of which there are none.
 */
export async function bodyOf(
  input: { body?: StreamingBlob; guardrailIdentifier?: string },
  ctx: { holdBody(bytes: number): void },
): Promise<Members> {
  if (input.guardrailIdentifier !== undefined)
    throw errors.invalidField('guardrailIdentifier', 'names a guardrail, and there are none on this platform');
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of input.body ?? []) {
    size += part.byteLength;
    if (size > MAX_BYTES) throw errors.invalidField('body', `must not be larger than ${MAX_BYTES} bytes`);
    ctx.holdBody(part.byteLength);
    parts.push(part);
  }
  const body = parsed(Buffer.concat(parts).toString('utf8'));
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return { ...body };
  throw errors.invalidField('body', 'must be a JSON object');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The format of a body. Throws ValidationException for any other than the two that are served. */
export function formatOf(body: Members): ClientFormat {
  if (typeof body.anthropic_version === 'string') return MESSAGES;
  const foreign = ['inferenceConfig', 'schemaVersion', 'inputText', 'prompt', 'inputs'].find((name) => name in body);
  if (foreign === undefined && Array.isArray(body.messages)) return CHAT_COMPLETIONS;
  throw errors.invalidField(
    'body',
    'must be one of the Anthropic messages API (with anthropic_version) or of OpenAI chat completions (with messages); for any other model use Converse, which serves all',
  );
}
