import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import { createOutbound } from '../outbound/index.ts';
import { createReranker } from './reranker.ts';

let answer: unknown;
let asked: unknown;
const server = createServer((req, res) => {
  let text = '';
  req.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  req.on('end', () => {
    asked = { path: req.url, authorization: req.headers.authorization, ...JSON.parse(text) };
    res.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
  });
});
const outbound = createOutbound({ anywhere: true, clock: systemClock });
let url = '';

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v2`;
});
afterAll(async () => {
  await outbound.close();
  await new Promise((resolve) => server.close(resolve));
});

it('gives the scores in the order of the texts, whatever the order of the answer', async () => {
  answer = {
    results: [
      { index: 1, relevance_score: 0.9 },
      { index: 0, relevance_score: -2 },
    ],
  };
  expect(await createReranker({ url, outbound, model: 'm', apiKey: 'k' }).score('q', ['a', 'b'])).toEqual([-2, 0.9]);
  expect(asked).toEqual({
    path: '/v2/rerank',
    authorization: 'Bearer k',
    model: 'm',
    query: 'q',
    documents: ['a', 'b'],
    top_n: 2,
  });
});

it.each([{}, { results: 'x' }, { results: [{ index: 0, relevance_score: 1 }] }, { results: [{ index: 0 }, null, 1] }])(
  'refuses %j',
  async (wrong) => {
    answer = wrong;
    await expect(createReranker({ url, outbound, model: 'm' }).score('q', ['a', 'b'])).rejects.toThrow();
  },
);
