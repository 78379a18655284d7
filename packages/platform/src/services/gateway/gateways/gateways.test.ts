import { errors } from '@agentplatform/contract';
import { pino } from 'pino';
import { describe, expect, it, vi } from 'vitest';
import type { RequestContext } from '../../../kernel/service.ts';
import { Gateways, type GatewaysDeps } from './gateways.ts';

const accountId = '111122223333';
const ARN = `arn:aws:lambda:us-east-1:${accountId}:function:guard`;

/** How far a gateway with that interceptor comes, made by who may call one function. */
function create(arn: string, mayCall: string): Promise<unknown> {
  const allows = vi.fn(async (action: string, resource: string) => {
    if (action === 'lambda:InvokeFunction' && resource !== mayCall) throw errors.accessDenied('not yours');
  });
  // What is asked of them before anything is stored.
  const gateways = new Gateways({
    ...{ region: 'us-east-1', newIdSuffix: () => 'a', log: pino({ level: 'silent' }), roleExists: async () => true },
    database: { transaction: () => Promise.reject(new Error('is being made')) },
  } as unknown as GatewaysDeps);
  const ctx = { accountId, require: allows } as unknown as RequestContext;
  const interceptorConfigurations = [{ interceptor: { lambda: { arn } }, interceptionPoints: ['REQUEST' as const] }];
  const roleArn = `arn:aws:iam::${accountId}:role/gateway`;
  return gateways.create({ name: 'one', roleArn, authorizerType: 'AWS_IAM', interceptorConfigurations }, ctx);
}

describe('who names a function as an interceptor', () => {
  it.each([ARN, `${ARN}:$LATEST`])('needs the right to that very one: %s', async (arn) => {
    await expect(create(arn, ARN)).rejects.toThrow('is being made');
    await expect(create(arn, `${ARN}-other`)).rejects.toMatchObject({ name: 'AccessDeniedException' });
  });

  it.each([
    ARN.replace(accountId, '444455556666'),
    ARN.replace('us-east-1', 'eu-west-1'),
    `${ARN}:7`,
    ARN.replace('function', 'layer'),
  ])('is told of one that cannot be called: %s', async (arn) => {
    await expect(create(arn, arn)).rejects.toMatchObject({
      name: 'ValidationException',
      message: expect.stringContaining('interceptorConfigurations[0].interceptor.lambda.arn'),
    });
  });
});
