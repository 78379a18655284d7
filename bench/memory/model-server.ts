import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Embedder } from '../../packages/platform/src/kernel/embeddings/index.ts';

export interface ModelServer {
  /** Base URL of an OpenAI-compatible service. */
  url: string;
  calls: { embeddings: number; chat: number };
  close(): Promise<void>;
}

/**
 * One OpenAI-compatible service for both sides of a comparison: real embeddings, each text's only once, and a chat model in
 * whose place `reply` answers. Without an embedder its embeddings are empty.
 */
export async function startModelServer(
  embedder: Embedder | undefined,
  reply: (system: string, user: string) => string,
): Promise<ModelServer> {
  const known = new Map<string, number[]>();
  const calls = { embeddings: 0, chat: 0 };
  const answer = async (path: string, body: Record<string, unknown>): Promise<object> => {
    if (path.endsWith('/embeddings')) {
      calls.embeddings += 1;
      const input = (Array.isArray(body.input) ? body.input : [body.input]).map(String);
      const missing = [...new Set(input)].filter((text) => !known.has(text));
      const vectors = embedder && missing.length > 0 ? await embedder.embed(missing) : [];
      for (const [index, text] of missing.entries()) known.set(text, Array.from(vectors[index] ?? []));
      const data = input.map((text, index) => ({ object: 'embedding', index, embedding: known.get(text) }));
      return { object: 'list', model: body.model, data, usage: { prompt_tokens: 0, total_tokens: 0 } };
    }
    calls.chat += 1;
    const messages = body.messages as { role: string; content: string }[];
    const said = (role: string): string =>
      messages.flatMap((message) => (message.role === role ? [message.content] : [])).join('\n');
    const content = reply(said('system'), said('user'));
    const choice = { index: 0, finish_reason: 'stop', message: { role: 'assistant', content } };
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    return { id: 'c', object: 'chat.completion', created: 0, model: body.model, choices: [choice], usage };
  };
  const server = createServer((req, res) => {
    let text = '';
    req.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    req.on('end', () => {
      answer(req.url ?? '', JSON.parse(text)).then(
        (found) => res.setHeader('content-type', 'application/json').end(JSON.stringify(found)),
        (error: unknown) => res.writeHead(500).end(String(error)),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    calls,
    close: () => new Promise((resolve) => server.close(() => resolve()).closeAllConnections()),
  };
}
