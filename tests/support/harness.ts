import { randomUUID } from 'node:crypto';
import {
  type HarnessMessage,
  InvokeHarnessCommand,
  type InvokeHarnessCommandInput,
  type InvokeHarnessStreamOutput,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateHarnessCommand,
  type CreateHarnessCommandInput,
  GetHarnessCommand,
  type Harness,
} from '@aws-sdk/client-bedrock-agentcore-control';
import type { Clients } from './clients.ts';
import type { TestPlatform } from './platform-process.ts';

let made = 0;

/** A harness with the default role, once it is READY. Its memory is disabled unless said. */
export async function newHarness(
  platform: TestPlatform,
  clients: Clients,
  definition: Partial<CreateHarnessCommandInput> = {},
): Promise<Harness> {
  const { harness } = await clients.control.send(
    new CreateHarnessCommand({
      harnessName: `harness_${++made}`,
      executionRoleArn: platform.ready.defaultRoleArn,
      memory: { disabled: {} },
      ...definition,
    }),
  );
  return untilSettled(clients, harness?.harnessId ?? '');
}

/** The harness once it is neither CREATING nor UPDATING. */
export async function untilSettled(clients: Clients, harnessId: string): Promise<Harness> {
  for (;;) {
    const { harness } = await clients.control.send(new GetHarnessCommand({ harnessId }));
    if (!harness) throw new Error('no harness');
    if (harness.status !== 'CREATING' && harness.status !== 'UPDATING') return harness;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** An id of a session as the wire wants it. */
export const newSession = (): string => `session-${randomUUID()}`;

export const user = (text: string): HarnessMessage => ({ role: 'user', content: [{ text }] });

/** What a stream brought. */
export interface Answer {
  events: InvokeHarnessStreamOutput[];
  /** All text of the assistant. */
  text: string;
  /** The last one. */
  stopReason: string | undefined;
  /** The calls of the last message of the model, as a client would send them back. */
  calls: { toolUseId: string; name: string; input: unknown; type: string | undefined }[];
}

/** Invokes a harness with the AWS SDK and reads the stream to its end. */
export async function invokeHarness(clients: Clients, input: InvokeHarnessCommandInput): Promise<Answer> {
  const { stream } = await clients.data.send(new InvokeHarnessCommand(input));
  const events: InvokeHarnessStreamOutput[] = [];
  for await (const event of stream ?? []) events.push(event);
  return answerOf(events);
}

export function answerOf(events: InvokeHarnessStreamOutput[]): Answer {
  const answer: Answer = { events, text: '', stopReason: undefined, calls: [] };
  let input = '';
  for (const { messageStart, contentBlockStart, contentBlockDelta, contentBlockStop, messageStop } of events) {
    if (messageStart?.role === 'assistant') answer.calls = [];
    const use = contentBlockStart?.start?.toolUse;
    if (use) {
      input = '';
      answer.calls.push({ toolUseId: use.toolUseId ?? '', name: use.name ?? '', input: undefined, type: use.type });
    }
    answer.text += contentBlockDelta?.delta?.text ?? '';
    input += contentBlockDelta?.delta?.toolUse?.input ?? '';
    const last = answer.calls.at(-1);
    if (contentBlockStop && last && last.input === undefined && input !== '') last.input = parsed(input);
    answer.stopReason = messageStop?.stopReason ?? answer.stopReason;
  }
  return answer;
}

/** What the model gave as input, which need not be JSON. */
function parsed(input: string): unknown {
  try {
    return JSON.parse(input);
  } catch {
    return input;
  }
}
