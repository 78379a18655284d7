import { AgentPlatformApp } from 'agentplatform';

// Lives as long as the session: each has a process, a disk and a network of its own.
let calls = 0;

const app = new AgentPlatformApp(async function* (payload) {
  calls++;
  // What an agent prints is what `agentcore logs` shows.
  console.log(`call ${calls}`);
  const name = typeof payload.name === 'string' ? payload.name : 'there';
  yield `Hello ${name}! `;
  if (payload.prompt !== undefined) yield `You said ${JSON.stringify(payload.prompt)}. `;
  yield `This is call ${calls} of this session.`;
});

await app.run();
