import { join } from 'node:path';
import { GetAgentCardCommand, InvokeAgentRuntimeCommandCommand } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const folder = join(import.meta.dirname, '../support/probe-agent');
let platform: TestPlatform;
let clients: Clients;
let arn: string;

beforeAll(async () => {
  platform = await startTestPlatform();
  clients = clientsOf(platform);
  arn = (await deployAgent(platform, clients, { folder })).arn;
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

interface Outcome {
  stdout: string;
  stderr: string;
  exitCode: number | undefined;
  status: string | undefined;
  pieces: number;
}

/** Runs a command with the AWS SDK and collects what its event stream says. */
async function run(session: string, command: string, timeout?: number): Promise<Outcome> {
  const answer = await clients.data.send(
    new InvokeAgentRuntimeCommandCommand({
      agentRuntimeArn: arn,
      runtimeSessionId: session,
      body: { command, timeout },
    }),
  );
  const outcome: Outcome = { stdout: '', stderr: '', exitCode: undefined, status: undefined, pieces: 0 };
  for await (const { chunk } of answer.stream ?? []) {
    if (chunk?.contentDelta) {
      outcome.pieces += 1;
      outcome.stdout += chunk.contentDelta.stdout ?? '';
      outcome.stderr += chunk.contentDelta.stderr ?? '';
    }
    if (chunk?.contentStop) Object.assign(outcome, chunk.contentStop);
  }
  return outcome;
}

describe('InvokeAgentRuntimeCommand', () => {
  it('runs beside the agent in the session’s sandbox', async () => {
    const session = sessionId('shell');
    await invokeText(clients, arn, session, { do: 'write', text: 'from the agent' });
    expect(await run(session, 'cat /tmp/kept; echo warning >&2; exit 3')).toMatchObject({
      stdout: 'from the agent',
      stderr: 'warning\n',
      exitCode: 3,
      status: 'COMPLETED',
    });
  });

  it('streams output as it comes, letters of several bytes whole', async () => {
    const { stdout, pieces } = await run(
      sessionId('stream'),
      'for i in 1 2 3; do printf "é€𝄞 %s\\n" $i; sleep 0.2; done',
    );
    expect(stdout).toBe('é€𝄞 1\né€𝄞 2\né€𝄞 3\n');
    expect(pieces).toBeGreaterThan(1);
  });

  it('kills what takes too long, and refuses times outside its limits', async () => {
    const session = sessionId('slow');
    expect(await run(session, 'echo begun; sleep 60', 1)).toMatchObject({ stdout: 'begun\n', status: 'TIMED_OUT' });
    // What is left of it can only wait to be reaped.
    const left = await run(session, 'for p in $(pgrep sleep); do grep State /proc/$p/status; done; echo end');
    expect(left.stdout.replaceAll(/State:\s+Z \(zombie\)\n/g, '')).toBe('end\n');
    await expect(run(session, 'true', 3601)).rejects.toMatchObject({
      name: 'ValidationException',
      fieldList: [{ name: 'body.timeout' }],
    });
  });
});

it('GetAgentCard is refused for a runtime that is no A2A agent', async () => {
  await expect(
    clients.data.send(new GetAgentCardCommand({ agentRuntimeArn: arn, runtimeSessionId: sessionId('card') })),
  ).rejects.toMatchObject({ name: 'ValidationException' });
});
