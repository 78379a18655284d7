import { AgentPlatformApp } from 'agentplatform';

// The memory of one session: every session has a process, a disk and a network of its own.
let calls = 0;

const app = new AgentPlatformApp(async function* (payload) {
  calls++;
  yield 'Hello! ';
  yield `You said ${JSON.stringify(payload.prompt ?? null)}. `;
  yield `This is call ${calls} of this session.`;
});

await app.run();
