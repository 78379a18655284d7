import { errors } from '@agentplatform/contract';
import type { Executor } from '../../kernel/storage/index.ts';
import type { Gateway } from './gateways/gateway.ts';

/** Keeps a gateway from being deleted until the transaction ends. Rejects with ResourceNotFoundException. */
export async function holdGateway({ id, arn }: Pick<Gateway, 'id' | 'arn'>, tx: Executor): Promise<void> {
  const held = await tx.query('SELECT FROM resources WHERE arn = $1 FOR KEY SHARE', [arn]);
  if (held.length === 0)
    throw errors.resourceNotFound(`There is no gateway ${id} in this account.`, {
      remedy: 'ListGateways lists those that exist.',
    });
}
