import type { BedrockAgentCoreClient } from '@aws-sdk/client-bedrock-agentcore';

type Marshaller = BedrockAgentCoreClient['config']['eventStreamMarshaller'];

/** Members that hold base64 text on the wire and bytes in a result. */
const BLOBS = new Set(['blob', 'data']);

/**
 * Reads `result` events itself, and leaves all others to `inner`: the AWS SDK matches a pattern over the base64 text of a file before
 * it decodes it, which takes most of the time that it takes to read one.
 */
export function readingResults(inner: Marshaller): Marshaller {
  return {
    serialize: inner.serialize.bind(inner),
    deserialize: (body, other) =>
      inner.deserialize(body, (event) => {
        const bytes: unknown = event.result?.body;
        // The union has this member, so that this is a value of its type.
        return bytes instanceof Uint8Array
          ? (Promise.resolve({ result: parse(bytes) }) as ReturnType<typeof other>)
          : other(event);
      }),
  };
}

function parse(bytes: Uint8Array): unknown {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  const result = JSON.parse(text) as { content?: Record<string, unknown>[] };
  for (const block of result.content ?? []) {
    decode(block);
    if (typeof block.resource === 'object' && block.resource !== null)
      decode(block.resource as Record<string, unknown>);
  }
  return result;
}

function decode(holder: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(holder)) {
    if (BLOBS.has(name) && typeof value === 'string') holder[name] = decodeBase64(value);
  }
}

/** Throws TypeError for what is no base64 text. */
function decodeBase64(text: string): Uint8Array {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length !== (text.length / 4) * 3 - (text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0))
    throw new TypeError('The platform sent a file that is not a base64 text.');
  return bytes;
}
