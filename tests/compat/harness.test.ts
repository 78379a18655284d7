import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BotoAnswer, botoOf, python } from '../support/boto3.ts';
import { newSession } from '../support/harness.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { ScriptedModel } from '../support/scripted-model.ts';

let platform: TestPlatform;
let model: ScriptedModel;

beforeAll(async () => {
  model = await ScriptedModel.start();
  platform = await startTestPlatform({ args: ['--models-url', model.url, '--models-name', 'scripted'] });
}, 120_000);

afterAll(async () => {
  await platform?.dispose();
  model?.close();
});

describe.skipIf(!python)('boto3 as it is', () => {
  const control = async (operation: string, input: object): Promise<BotoAnswer> =>
    (await botoOf(platform).control([operation, input]))[0] ?? {};
  const settled = async (harnessId: string) => {
    for (;;) {
      const { output } = await control('GetHarness', { harnessId });
      if (!/ING$/.test(output.harness.status)) return output.harness;
    }
  };

  it('calls every operation of harnesses, and reads every event of a stream', async () => {
    const tools = [
      {
        ...{ type: 'inline_function', name: 'ask' },
        config: { inlineFunction: { description: 'Asks', inputSchema: { type: 'object' } } },
      },
    ];
    const made = await control('CreateHarness', {
      ...{ harnessName: 'boto', executionRoleArn: platform.ready.defaultRoleArn, tools, memory: { disabled: {} } },
      tags: { team: 'a' },
    });
    const { harnessId, arn: harnessArn } = made.output.harness;
    const early = await botoOf(platform).data([
      'InvokeHarness',
      { harnessArn, runtimeSessionId: newSession(), messages: [{ role: 'user', content: [{ text: 'Too soon.' }] }] },
    ]);
    expect(early[0]?.error).toMatchObject({ code: 'ValidationException', message: expect.stringMatching(/READY/) });
    expect(await settled(harnessId)).toMatchObject({ status: 'READY', harnessVersion: '1' });

    expect((await control('ListHarnesses', {})).output.harnesses).toMatchObject([{ harnessId }]);
    expect((await control('UpdateHarness', { harnessId, maxIterations: 5 })).output.harness.status).toBe('UPDATING');
    expect(await settled(harnessId)).toMatchObject({ status: 'READY', harnessVersion: '2', maxIterations: 5 });
    const versions = await control('ListHarnessVersions', { harnessId });
    expect(
      versions.output.harnessVersions.map(({ harnessVersion }: { harnessVersion: string }) => harnessVersion),
    ).toEqual(['2', '1']);

    const endpoint = { harnessId, endpointName: 'stable' };
    const pinned = await control('CreateHarnessEndpoint', { ...endpoint, targetVersion: '1' });
    expect(pinned.output.endpoint).toMatchObject({ endpointName: 'stable', liveVersion: '1', status: 'READY' });
    await control('UpdateHarnessEndpoint', { ...endpoint, targetVersion: '2' });
    expect((await control('GetHarnessEndpoint', endpoint)).output.endpoint.liveVersion).toBe('2');
    const listed = await control('ListHarnessEndpoints', { harnessId });
    expect(listed.output.endpoints.map((one: { endpointName: string }) => one.endpointName)).toEqual([
      'DEFAULT',
      'stable',
    ]);
    expect((await control('ListTagsForResource', { resourceArn: harnessArn })).output.tags).toEqual({ team: 'a' });

    const calls = [{ id: 'c1', name: 'shell', input: { command: 'echo hi' } }];
    model.script = ({ messages }) => (messages.at(-1)?.role === 'tool' ? { text: ['Done.'] } : { calls });
    const [answer] = await botoOf(platform).data([
      'InvokeHarness',
      {
        ...{ harnessArn, qualifier: 'stable', runtimeSessionId: newSession() },
        messages: [{ role: 'user', content: [{ text: 'Go.' }] }],
      },
    ]);
    const events: Record<string, object>[] = answer?.output.stream;
    expect(events.flatMap((event) => Object.keys(event))).toEqual([
      ...['messageStart', 'contentBlockStart', 'contentBlockDelta', 'contentBlockStop', 'messageStop'],
      ...['messageStart', 'contentBlockStart', 'contentBlockDelta', 'contentBlockStop', 'messageStop'],
      ...['messageStart', 'contentBlockDelta', 'contentBlockStop', 'messageStop', 'metadata'],
    ]);

    expect((await control('DeleteHarnessEndpoint', endpoint)).output.endpoint.status).toBe('DELETING');
    expect((await control('DeleteHarness', { harnessId })).output.harness.status).toBe('DELETING');
  }, 180_000);
});
