import { expect, it, vi } from 'vitest';
import { type GatewayTool, type OpenGateway, openGateway } from '../gateway-tools.ts';
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
    await callSearch(openGateway(gateway, [], new Map()), { query }, { find }, async (tools) => tools);
  const asked = find.mock.calls.map(([, query]) => query);
  expect(asked).toEqual(['cancel an order', 'a '.repeat(1_000), `${'a'.repeat(1_999)}\ufffd`]);
});

it('only what a caller could call is found, and what he could not takes no place of it', async () => {
  const tools = Array.from({ length: 30 }, (_, i) => ({ listed: `api___t${i}`, tool: { name: `t${i}`, hints: {} } }));
  const open = { ...openGateway(gateway, [], new Map()), tools } as unknown as OpenGateway;
  const find = vi.fn<ToolSearch['find']>(async (_open, _query, most) => ({
    ...{ found: open.tools.slice(0, most), shortcoming: undefined, unsearched: undefined },
  }));
  const last = async (all: readonly GatewayTool[]) => all.slice(-2);
  const { structuredContent } = await callSearch(open, { query: 'x' }, { find }, last);
  expect(structuredContent).toMatchObject({ tools: [{ name: 'api___t28' }, { name: 'api___t29' }] });
});
