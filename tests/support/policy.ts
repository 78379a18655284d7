import { randomUUID } from 'node:crypto';
import { CreatePolicyCommand, GetPolicyCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { expect } from 'vitest';
import type { Clients } from './clients.ts';

/** Writes a policy, of Dogwood where its text has a temporal condition, and waits until it counts. */
export async function activePolicy({ control }: Clients, policyEngineId: string, statement: string): Promise<void> {
  const definition = statement.includes('temporal') ? { policy: { statement } } : { cedar: { statement } };
  const name = `p_${randomUUID().slice(0, 8)}`;
  const { policyId } = await control.send(
    new CreatePolicyCommand({ policyEngineId, name, definition, validationMode: 'IGNORE_ALL_FINDINGS' }),
  );
  const get = () => control.send(new GetPolicyCommand({ policyEngineId, policyId }));
  await expect.poll(async () => (await get()).status, { timeout: 30_000 }).not.toBe('CREATING');
  const { status, statusReasons } = await get();
  expect(status, statusReasons?.join('\n')).toBe('ACTIVE');
}
