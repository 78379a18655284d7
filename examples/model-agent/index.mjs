// Asks a model that speaks the OpenAI protocol. Where it is and its key come from the environment.
import { createServer } from 'node:http';

const { OPENAI_BASE_URL, OPENAI_API_KEY, MODEL, PORT = '8080' } = process.env;

async function ask(prompt) {
  const answer = await fetch(`${OPENAI_BASE_URL}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${OPENAI_API_KEY}` },
    body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: prompt }] }),
  });
  if (!answer.ok) throw new Error(`the model answered ${answer.status}`);
  const { choices } = await answer.json();
  return choices[0].message.content;
}

const server = createServer(async (request, response) => {
  if (request.url === '/ping') return response.end('{"status":"Healthy"}');
  try {
    let body = '';
    for await (const part of request) body += part;
    response.end(JSON.stringify({ answer: await ask(JSON.parse(body).prompt) }));
  } catch (error) {
    response.writeHead(500).end(JSON.stringify({ error: `${error.message}: ${error.cause?.code ?? ''}` }));
  }
});
server.listen(Number(PORT), '0.0.0.0');
