import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InvokeHarnessCommand } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { invokeHarness, newHarness, newSession, user } from '../support/harness.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { ScriptedModel } from '../support/scripted-model.ts';

let dataDir: string;
let model: ScriptedModel;
let platform: TestPlatform;
let clients: Clients;

const start = async (): Promise<void> => {
  platform = await startTestPlatform({ dataDir, args: ['--models-url', model.url, '--models-name', 'scripted'] });
  clients = clientsOf(platform);
};

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-harness-killed-'));
  model = await ScriptedModel.start();
  await start();
}, 300_000);

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  model?.close();
  await rm(dataDir, { recursive: true, force: true });
});

it('a server that is killed in the middle of a turn leaves the conversation as it was before, and a turn that waits for its client still waits', async () => {
  const tools = [
    {
      ...{ type: 'inline_function' as const, name: 'ask' },
      config: { inlineFunction: { description: 'Asks', inputSchema: { type: 'object' } } },
    },
  ];
  const { arn: harnessArn } = await newHarness(platform, clients, { tools });
  const [session, waiting] = [newSession(), newSession()];
  model.script = () => ({ text: ['Hello.'] });
  await invokeHarness(clients, { harnessArn, runtimeSessionId: session, messages: [user('Hi.')] });
  model.script = () => ({ calls: [{ id: 'w', name: 'ask', input: {} }] });
  await invokeHarness(clients, { harnessArn, runtimeSessionId: waiting, messages: [user('Ask me.')] });

  model.script = () => ({ text: ['Half', ' of it.'], pause: () => new Promise(() => undefined) });
  const input = { harnessArn, runtimeSessionId: session, messages: [user('Lost.')] };
  const { stream } = await clients.data.send(new InvokeHarnessCommand(input));
  const broken = (async () => {
    for await (const event of stream ?? []) if (event.contentBlockDelta) await platform.end('SIGKILL');
  })();
  await expect(broken).rejects.toThrow();
  clients.close();

  await start();
  model.script = () => ({ text: ['Back.'] });
  const contents = () =>
    model.requests
      .at(-1)
      ?.messages.filter(({ role }) => role !== 'system')
      .map(({ content }) => content);
  await invokeHarness(clients, { harnessArn, runtimeSessionId: session, messages: [user('Again.')] });
  expect(contents()).toEqual(['Hi.', 'Hello.', 'Again.']);
  const answer = await invokeHarness(clients, {
    ...{ harnessArn, runtimeSessionId: waiting },
    messages: [
      { role: 'assistant', content: [{ toolUse: { toolUseId: 'w', name: 'ask', input: {} } }] },
      { role: 'user', content: [{ toolResult: { toolUseId: 'w', content: [{ text: 'Yes.' }], status: 'success' } }] },
    ],
  });
  expect(answer.stopReason).toBe('end_turn');
  expect(contents()).toContain('Yes.');
}, 180_000);
