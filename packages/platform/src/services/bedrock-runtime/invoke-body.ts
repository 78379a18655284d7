import { errors, type StreamingBlob } from '@agentplatform/contract';
import type { ModelAnswer, ModelEvent, ModelRequest } from '../../kernel/models/index.ts';
import type { RequestContext } from '../../kernel/service.ts';
import { anthropicBody } from './anthropic-body.ts';
import type { Members } from './json-body.ts';
import { openaiBody } from './openai-body.ts';

/** What an answer says of itself. */
export interface Said {
  id: string;
  /** As the client named it. */
  model: string;
  /** Since the Unix epoch. */
  seconds: number;
}

/** One vendor's way of putting a conversation into the body of InvokeModel. */
export interface Dialect {
  request(body: Members): ModelRequest;
  answer(answer: ModelAnswer, said: Said): object;
  events(events: AsyncIterable<ModelEvent>, said: Said): AsyncIterable<object>;
}

/** The model's own limit of a body. */
const MAX_BYTES = 25_000_000;

/**
 * The JSON object in the body of InvokeModel, for whose parts `ctx` takes memory. Rejects with ValidationException for what is none, and for a
 * guardrail, of which there are none.
 */
export async function bodyOf(
  input: { body?: StreamingBlob; guardrailIdentifier?: string },
  ctx: Pick<RequestContext, 'holdBody'>,
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

/** The dialect of a body. Throws ValidationException for any other than the two that are served. */
export function dialectOf(body: Members): Dialect {
  if (typeof body.anthropic_version === 'string') return anthropicBody;
  const foreign = ['inferenceConfig', 'schemaVersion', 'inputText', 'prompt', 'inputs'].find((name) => name in body);
  if (foreign === undefined && Array.isArray(body.messages)) return openaiBody;
  throw errors.invalidField(
    'body',
    'must be one of the Anthropic messages API (with anthropic_version) or of OpenAI chat completions (with messages); for any other model use Converse, which serves all',
  );
}
