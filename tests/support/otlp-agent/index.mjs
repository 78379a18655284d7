// An agent for tests of traces: it sends the spans of one turn to where its environment says, as an exporter does.
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';

const id = (bytes) => randomBytes(bytes).toString('hex');
const attribute = ([key, value]) => ({
  key,
  value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
});

function span(traceId, parentSpanId, name, attributes) {
  const now = BigInt(Date.now()) * 1_000_000n;
  return {
    ...{ traceId, parentSpanId, spanId: id(8), name, kind: 1 },
    ...{ startTimeUnixNano: String(now), endTimeUnixNano: String(now + 7_000_000n) },
    attributes: Object.entries(attributes).map(attribute),
  };
}

createServer(async (request, response) => {
  if (request.url === '/ping') return response.end('{"status":"Healthy"}');
  const { prompt } = await json(request);
  const [, traceId = id(16), parent = ''] = (request.headers.traceparent ?? '').split('-');
  const root = span(traceId, parent, 'invoke_agent helper', { 'gen_ai.operation.name': 'invoke_agent' });
  const chat = span(traceId, root.spanId, 'chat small', {
    ...{ 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'small', 'gen_ai.input.messages': prompt },
    ...{
      'gen_ai.output.messages': 'the weather is fine',
      'gen_ai.usage.input_tokens': 11,
      'gen_ai.usage.output_tokens': 5,
    },
  });
  const tool = span(traceId, chat.spanId, 'execute_tool weather', {
    ...{ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'weather' },
  });
  const resource = { attributes: [attribute(['service.name', 'helper'])] };
  const sent = await fetch(process.env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      resourceSpans: [{ resource, scopeSpans: [{ scope: { name: 'own' }, spans: [root, chat, tool] }] }],
    }),
  });
  response.end(JSON.stringify({ traceId, status: sent.status, answer: await sent.text() }));
}).listen(Number(process.env.PORT ?? 8080), '0.0.0.0');
