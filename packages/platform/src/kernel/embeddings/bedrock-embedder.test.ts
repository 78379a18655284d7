import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import { createOutbound } from '../outbound/index.ts';
import { openBedrockEmbedder } from './bedrock-embedder.ts';

/** The exchanges of Bedrock's InvokeModel as its user guide documents them for these models. */
const asked: { path: string; authorization: string | undefined; body: Record<string, unknown> }[] = [];
let answer: (body: { inputText?: string; texts?: string[] }) => unknown;
const server = createServer((req, res) => {
  let text = '';
  req.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  req.on('end', () => {
    const body = JSON.parse(text);
    asked.push({ path: req.url ?? '', authorization: req.headers.authorization, body });
    res.setHeader('content-type', 'application/json').end(JSON.stringify(answer(body)));
  });
});
const outbound = createOutbound({ anywhere: true, clock: systemClock });
let url = '';

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await outbound.close();
  await new Promise((resolve) => server.close(resolve));
});

describe('embeddings of Bedrock', () => {
  it('asks Titan for one text at a time, with the API key', async () => {
    answer = ({ inputText = '' }) => ({ embedding: [inputText.length, 0, 0], inputTextTokenCount: 1 });
    const embedder = await openBedrockEmbedder({ url, outbound, model: 'amazon.titan-embed-text-v2:0', apiKey: 'key' });
    expect(embedder).toMatchObject({ model: 'amazon.titan-embed-text-v2:0', dimensions: 3 });
    expect(asked.splice(0)).toEqual([
      {
        path: '/model/amazon.titan-embed-text-v2%3A0/invoke',
        authorization: 'Bearer key',
        body: { inputText: 'dimension', normalize: true },
      },
    ]);
    const vectors = await embedder.embed(['a', 'bb', 'ccc', 'dddd', 'eeeee']);
    expect(vectors.map((vector) => [...vector])).toEqual(Array.from({ length: 5 }, () => [1, 0, 0]));
    expect(asked.splice(0).map(({ body }) => body.inputText)).toEqual(['a', 'bb', 'ccc', 'dddd', 'eeeee']);
  });

  it('asks Cohere for many at once, also where vectors come by type', async () => {
    answer = ({ texts = [] }) => ({ embeddings: { float: texts.map((text) => [0, text.length]) } });
    const embedder = await openBedrockEmbedder({ url, outbound, model: 'us.cohere.embed-v4:0' });
    const vectors = await embedder.embed(Array.from({ length: 100 }, () => 'x'));
    expect(vectors).toHaveLength(100);
    expect(asked.splice(1).map(({ body }) => (body.texts as string[]).length)).toEqual([96, 4]);
    answer = ({ texts = [] }) => ({ embeddings: texts.map(() => [1, 2, 3]) });
    await expect(embedder.embed(['x'])).rejects.toThrow('changed');
    asked.splice(0);
  });

  it.each([{}, { embedding: [] }, { embedding: ['a'] }, { embedding: [Number.NaN] }, { message: 'no' }, null])(
    'refuses %j in the place of a vector',
    async (wrong) => {
      answer = () => wrong;
      await expect(openBedrockEmbedder({ url, outbound, model: 'amazon.titan-embed-text-v1' })).rejects.toThrow();
    },
  );

  it('refuses fewer vectors than texts', async () => {
    answer = () => ({ embeddings: [] });
    await expect(openBedrockEmbedder({ url, outbound, model: 'cohere.embed-english-v3' })).rejects.toThrow(
      'another number',
    );
  });
});
