import { InvokeAgentRuntimeCommand, type InvokeAgentRuntimeCommandInput } from '@aws-sdk/client-bedrock-agentcore';
import type { Clients } from './clients.ts';

/** A session id of the least length that the wire allows. */
export function sessionId(name: string): string {
  return `${name}-${Math.random().toString(36).slice(2)}`.padEnd(36, '0');
}

/** Invokes an agent with a JSON payload and gives its whole answer as text. */
export async function invokeText(
  clients: Clients,
  arn: string,
  session: string,
  payload: unknown,
  more: Partial<InvokeAgentRuntimeCommandInput> = {},
): Promise<string> {
  const answer = await clients.data.send(
    new InvokeAgentRuntimeCommand({
      agentRuntimeArn: arn,
      runtimeSessionId: session,
      contentType: 'application/json',
      payload: Buffer.from(JSON.stringify(payload)),
      ...more,
    }),
  );
  return (await answer.response?.transformToString()) ?? '';
}

/** The same, read as JSON. */
export async function invokeJson(
  clients: Clients,
  arn: string,
  session: string,
  payload: unknown,
): Promise<Record<string, unknown>> {
  return JSON.parse(await invokeText(clients, arn, session, payload));
}
