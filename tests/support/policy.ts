import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { CreatePolicyCommand, GetPolicyCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import type { Clients } from './clients.ts';

/** Writes a policy, of Dogwood where its text has a temporal condition, and waits until it counts. */
export async function activePolicy({ control }: Clients, policyEngineId: string, statement: string): Promise<void> {
  const definition = statement.includes('temporal') ? { policy: { statement } } : { cedar: { statement } };
  const name = `p_${randomUUID().slice(0, 8)}`;
  const { policyId } = await control.send(
    new CreatePolicyCommand({ policyEngineId, name, definition, validationMode: 'IGNORE_ALL_FINDINGS' }),
  );
  for (;;) {
    const { status, statusReasons } = await control.send(new GetPolicyCommand({ policyEngineId, policyId }));
    if (status === 'ACTIVE') return;
    if (status !== 'CREATING') throw new Error(`the policy is ${status}: ${statusReasons?.join('; ')}`);
    await delay(50);
  }
}
