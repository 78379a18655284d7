import { expect, it, vi } from 'vitest';
import { openGateway } from '../gateway-tools.ts';
import type { Gateway } from '../gateways/gateway.ts';
import type { ToolSearch } from '../search/index.ts';
import { callSearch } from './search-tool.ts';

const gateway: Gateway = {
  ...{ arn: 'gateway', accountId: '111122223333', id: 'one', name: 'one', createdAt: 0, updatedAt: 0 },
  definition: { roleArn: 'role', authorizerType: 'AWS_IAM' },
};

it('a query is looked at as far as the texts of tools are', async () => {
  const find = vi.fn<ToolSearch['find']>(async () => ({ found: [], shortcoming: undefined, unsearched: undefined }));
  for (const query of ['cancel an order', 'a '.repeat(2 ** 20), `${'a'.repeat(1_999)}😀`])
    await callSearch(openGateway(gateway, [], new Map()), { query }, { find });
  const asked = find.mock.calls.map(([, query]) => query);
  expect(asked).toEqual(['cancel an order', 'a '.repeat(1_000), `${'a'.repeat(1_999)}\ufffd`]);
});
