import {
  CreateHarnessCommand,
  DeleteHarnessCommand,
  GetHarnessCommand,
  ListHarnessesCommand,
  ListHarnessVersionsCommand,
  UpdateHarnessCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { invokeHarness, newHarness, newSession, untilSettled, user } from '../support/harness.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { ScriptedModel, type ScriptedRequest } from '../support/scripted-model.ts';

let platform: TestPlatform;
let clients: Clients;
let model: ScriptedModel;

beforeAll(async () => {
  model = await ScriptedModel.start();
  platform = await startTestPlatform({ args: ['--models-url', model.url, '--models-name', 'scripted'] });
  clients = clientsOf(platform);
}, 300_000);

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  model?.close();
});

beforeEach(() => {
  model.requests.length = 0;
  model.script = () => ({ text: ['Hello', ' there.'] });
});

/** What the last request of a model said, without the system prompt. */
const said = ({ messages }: ScriptedRequest) => messages.filter(({ role }) => role !== 'system');

describe('a harness', () => {
  it('is made, read, listed, changed and deleted', async () => {
    const made = await clients.control.send(
      new CreateHarnessCommand({
        harnessName: 'life',
        executionRoleArn: platform.ready.defaultRoleArn,
        systemPrompt: [{ text: 'Be brief.' }],
        memory: { disabled: {} },
      }),
    );
    expect(made.harness).toMatchObject({ harnessName: 'life', status: 'CREATING', harnessVersion: '1' });
    const id = made.harness?.harnessId ?? '';
    const ready = await untilSettled(clients, id);
    expect(ready).toMatchObject({
      ...{ status: 'READY', systemPrompt: [{ text: 'Be brief.' }], allowedTools: ['*'] },
      ...{ maxIterations: 75, timeoutSeconds: 3600, truncation: { strategy: 'sliding_window' } },
    });
    const listed = await clients.control.send(new ListHarnessesCommand({}));
    expect(listed.harnesses?.map((one) => one.harnessId)).toContain(id);

    await clients.control.send(new UpdateHarnessCommand({ harnessId: id, maxIterations: 3 }));
    expect(await untilSettled(clients, id)).toMatchObject({
      ...{ status: 'READY', harnessVersion: '2', maxIterations: 3, systemPrompt: [{ text: 'Be brief.' }] },
    });
    const { harnessVersions } = await clients.control.send(new ListHarnessVersionsCommand({ harnessId: id }));
    expect(harnessVersions?.map((one) => one.harnessVersion)).toEqual(['2', '1']);

    const gone = await clients.control.send(new DeleteHarnessCommand({ harnessId: id }));
    expect(gone.harness?.status).toBe('DELETING');
    await expect
      .poll(() => clients.control.send(new GetHarnessCommand({ harnessId: id })).catch((e) => e.name))
      .toBe('ResourceNotFoundException');
  });

  it('answers with text, event by event, and remembers the conversation of its session', async () => {
    const { arn: harnessArn } = await newHarness(platform, clients, { systemPrompt: [{ text: 'Be kind.' }] });
    const runtimeSessionId = newSession();
    const first = await invokeHarness(clients, { harnessArn, runtimeSessionId, messages: [user('Hi.')] });
    expect(first.events).toEqual([
      { messageStart: { role: 'assistant' } },
      { contentBlockDelta: { contentBlockIndex: 0, delta: { text: 'Hello' } } },
      { contentBlockDelta: { contentBlockIndex: 0, delta: { text: ' there.' } } },
      { contentBlockStop: { contentBlockIndex: 0 } },
      { messageStop: { stopReason: 'end_turn' } },
      {
        metadata: {
          usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 },
          metrics: { latencyMs: expect.any(Number) },
        },
      },
    ]);
    await invokeHarness(clients, { harnessArn, runtimeSessionId, messages: [user('Again.')] });
    expect(model.requests.at(-1)?.messages[0]).toMatchObject({ role: 'system', content: 'Be kind.' });
    expect(said(model.requests.at(-1) as ScriptedRequest)).toMatchObject([
      { role: 'user', content: 'Hi.' },
      { role: 'assistant', content: 'Hello there.' },
      { role: 'user', content: 'Again.' },
    ]);
    await invokeHarness(clients, { harnessArn, runtimeSessionId: newSession(), messages: [user('Other.')] });
    expect(said(model.requests.at(-1) as ScriptedRequest)).toMatchObject([{ role: 'user', content: 'Other.' }]);
  });
});
