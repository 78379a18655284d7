import { AIMessage, ToolMessage } from '@langchain/core/messages';
import { fakeModel } from '@langchain/core/testing';
import { codeInterpreterTools as aiSdkTools } from 'agentplatform/ai-sdk';
import { CodeInterpreter } from 'agentplatform/code-interpreter';
import { codeInterpreterTools as langChainTools } from 'agentplatform/langchain';
import { generateText, stepCountIs } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { createAgent } from 'langchain';

/**
 * An agent of each framework whose model is a script (argument: the tool calls that it makes, as JSON), with the tools of one real
 * session. Prints what its model got to see, as JSON. Run where the packed SDK and both frameworks are installed.
 */
const calls: [name: string, input: Record<string, unknown>][] = JSON.parse(process.argv[2] ?? '[]');

interface Seen {
  text: string;
  pictures: string[];
  failed: boolean;
}

async function langChain(interpreter: CodeInterpreter): Promise<{ seen: Seen[]; said: unknown }> {
  const script = calls.reduce(
    (model, [name, args], i) => model.respondWithTools([{ name, args, id: `call-${i}` }]),
    fakeModel(),
  );
  const agent = createAgent({ model: script.respond(new AIMessage('done')), tools: langChainTools(interpreter) });
  const input = { messages: [{ role: 'user', content: 'Work.' }] };
  const { messages } = await agent.invoke(input, { recursionLimit: 50 });
  const seen = messages.filter(ToolMessage.isInstance).map((message) => ({
    text: message.contentBlocks.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    pictures: message.contentBlocks.flatMap((block) => (block.type === 'image' ? [String(block.data)] : [])),
    failed: message.status === 'error',
  }));
  return { seen, said: messages.at(-1)?.content };
}

async function aiSdk(interpreter: CodeInterpreter): Promise<{ seen: Seen[]; said: unknown }> {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  const model = new MockLanguageModelV4({
    doGenerate: [
      ...calls.map(([toolName, input], i) => ({
        content: [{ type: 'tool-call' as const, toolCallId: `call-${i}`, toolName, input: JSON.stringify(input) }],
        finishReason: { unified: 'tool-calls' as const, raw: undefined },
        usage,
        warnings: [],
      })),
      {
        content: [{ type: 'text' as const, text: 'done' }],
        finishReason: { unified: 'stop' as const, raw: undefined },
        usage,
        warnings: [],
      },
    ],
  });
  const tools = aiSdkTools(interpreter);
  const { text } = await generateText({ model, prompt: 'Work.', tools, stopWhen: stepCountIs(50) });
  const last = model.doGenerateCalls.at(-1)?.prompt ?? [];
  const results = last.flatMap((message) => (message.role === 'tool' ? message.content : []));
  const seen = results.map((part): Seen => {
    if (part.type !== 'tool-result') return { text: part.type, pictures: [], failed: true };
    const { output } = part;
    if (output.type === 'error-text') return { text: output.value, pictures: [], failed: true };
    if (output.type !== 'content') return { text: output.type, pictures: [], failed: true };
    const pictures = output.value.flatMap((item) =>
      item.type === 'file' && item.data.type === 'data' ? [String(item.data.data)] : [],
    );
    return {
      text: output.value.map((item) => (item.type === 'text' ? item.text : '')).join(''),
      pictures,
      failed: false,
    };
  });
  return { seen, said: text };
}

const results: Record<string, unknown> = {};
for (const [framework, run] of Object.entries({ langChain, aiSdk })) {
  await using interpreter = new CodeInterpreter(process.env.AWS_REGION);
  results[framework] = await run(interpreter);
}
console.log(JSON.stringify(results));
