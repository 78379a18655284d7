import { createServer, type ServerResponse } from 'node:http';

/**
 * The provider behind the contestants: a process of its own, which answers every chat in the format of OpenAI with the same text of 200 tokens, as a
 * stream where that is asked for. Its only argument is its port.
 */
const TOKENS = 200;
const words = Array.from({ length: TOKENS }, (_, at) => (at === 0 ? 'shipped' : ` word${at}`));
const common = { id: 'chatcmpl-bench', created: 1_700_000_000, model: 'bench' };
const usage = { prompt_tokens: 3, completion_tokens: TOKENS, total_tokens: TOKENS + 3 };

const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;
const chunk = (delta: object, finish_reason: string | null = null): string =>
  event({ ...common, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] });
const [first = '', ...rest] = words.map((content, at) =>
  chunk(at === 0 ? { role: 'assistant', content } : { content }),
);
const stop = event({
  ...common,
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
});
const last = `${stop}${event({ ...common, object: 'chat.completion.chunk', choices: [], usage })}data: [DONE]\n\n`;
const message = { role: 'assistant', content: words.join('') };
const whole = JSON.stringify({
  ...{ ...common, object: 'chat.completion', usage },
  choices: [{ index: 0, message, finish_reason: 'stop' }],
});

function stream(res: ServerResponse): void {
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  // The rest comes later, as tokens do: it is no part of the first.
  res.write(first);
  setImmediate(() => res.end(`${rest.join('')}${last}`));
}

createServer((req, res) => {
  let text = '';
  req
    .on('data', (part: Buffer) => {
      text += part;
    })
    .on('end', () => {
      if (text.includes('"stream":true') || text.includes('"stream": true')) return stream(res);
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(whole) }).end(whole);
    });
}).listen(Number(process.argv[2]), '127.0.0.1');
