import { pino } from 'pino';
import { expect, it, vi } from 'vitest';
import type { Change, Changes } from '../../../kernel/storage/index.ts';
import type { OpenGateway } from '../gateway-tools.ts';
import type { Gateway } from '../gateways/gateway.ts';
import { McpServers, type McpServersDeps } from './mcp-servers.ts';

const ARN = 'arn:aws:bedrock-agentcore:us-east-1:111122223333:gateway/one-0123456789';
const gateway = (mcp: object): Gateway => ({
  ...{ arn: ARN, accountId: '111122223333', id: 'one-0123456789', name: 'one', createdAt: 0, updatedAt: 0 },
  definition: { roleArn: 'arn', authorizerType: 'AWS_IAM', protocolConfiguration: { mcp } },
});

it('keeps one server for a gateway, until it speaks otherwise or is gone', async () => {
  const told: ((changed: Change[]) => Promise<void>)[] = [];
  const find = vi.fn<() => Promise<OpenGateway | undefined>>();
  // What is asked of them here.
  const deps = {
    changes: {
      subscribe: (_topics: unknown, take: (changed: Change[]) => Promise<void>) => void told.push(take),
    } as unknown as Changes,
    tools: { find },
    log: pino({ level: 'silent' }),
  } as unknown as McpServersDeps;
  const servers = new McpServers(deps);
  const first = servers.of(gateway({}));
  expect(servers.of(gateway({ instructions: 'asked for with each request' }))).toBe(first);
  const whole = servers.of(gateway({ streamingConfiguration: { enableResponseStreaming: false } }));
  expect(whole).not.toBe(first);
  const older = servers.of(gateway({ supportedVersions: ['2025-06-18'] }));
  expect(older).not.toBe(whole);

  const change = [{ topic: 'gateway-target', key: `${ARN}/target/0123456789` }];
  find.mockResolvedValue({} as OpenGateway);
  await told[0]?.(change);
  expect(servers.of(gateway({ supportedVersions: ['2025-06-18'] }))).toBe(older);
  find.mockResolvedValue(undefined);
  await told[0]?.(change);
  expect(servers.of(gateway({ supportedVersions: ['2025-06-18'] }))).not.toBe(older);
  await servers.close();
});
