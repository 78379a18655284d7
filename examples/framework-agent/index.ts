import { Agent, tool } from '@strands-agents/sdk';
import { AgentPlatformApp } from 'agentplatform';
import { z } from 'zod';
import { ScriptedModel } from './scripted-model.ts';

const countLetters = tool({
  name: 'count_letters',
  description: 'Counts the letters of a text.',
  inputSchema: z.object({ text: z.string() }),
  callback: ({ text }) => String(text.match(/\p{L}/gu)?.length ?? 0),
});

const Request = z.object({ prompt: z.string().min(1) });

// One process is one session, so the agent's memory is the session's memory.
const agent = new Agent({ model: new ScriptedModel(), tools: [countLetters], printer: false });

const app = new AgentPlatformApp(
  async function* ({ prompt }) {
    for await (const event of agent.stream(prompt)) {
      // The framework has many events; those that carry text of the model are what the caller sees.
      if (event.type !== 'modelStreamUpdateEvent' || event.event.type !== 'modelContentBlockDeltaEvent') continue;
      if (event.event.delta.type === 'textDelta') yield event.event.delta.text;
    }
  },
  { parse: Request.parse },
);

await app.run();
