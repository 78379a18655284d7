// An agent as the vendor's documentation shows it, on the vendor's own package.
import { BedrockAgentCoreApp } from 'bedrock-agentcore/runtime';

let count = 0;

async function* parts() {
  for (const part of [1, 2, 3]) yield { event: 'part', data: { part } };
}

const app = new BedrockAgentCoreApp({
  invocationHandler: {
    process(request, context) {
      count += 1;
      if (request.do === 'stream') return parts();
      if (request.do === 'fail') throw new Error('on purpose');
      return { count, session: context.sessionId, token: context.workloadAccessToken };
    },
  },
  websocketHandler(socket, context) {
    socket.send(JSON.stringify({ session: context.sessionId }));
    socket.on('message', (text) => socket.send(String(text).toUpperCase()));
  },
});

app.run();
