import type { control } from '@agentplatform/contract';
import { describe, expect, it } from 'vitest';
import { checkDefinition, openPortsOf } from './definition.ts';

const definition = (allowedPorts: control.AllowedPort[]) => ({
  agentRuntimeArtifact: { containerConfiguration: { containerUri: 'platform/agent' } },
  roleArn: 'arn:aws:iam::123456789012:role/agent',
  networkConfiguration: { networkMode: 'PUBLIC' } as const,
  allowedPorts,
});
const check = (...ports: control.AllowedPort[]) =>
  checkDefinition(
    definition(ports),
    { idleSeconds: 900, maxLifetimeSeconds: 28_800 },
    { sessionLifetimeSeconds: 28_800, sandboxMemoryBytes: 2 ** 30 },
    () => undefined,
  );
const range = (from: number, to: number): control.AllowedPort => ({ portRange: { from, to } });

describe('allowedPorts', () => {
  it('are ports and ranges that do not overlap', () => {
    expect(() => check({ port: 8000 }, range(8001, 8442), range(8444, 12_000))).not.toThrow();
    expect(openPortsOf(definition([{ port: 8000 }, range(8001, 8002)]))).toEqual([
      { from: 8000, to: 8000 },
      { from: 8001, to: 8002 },
    ]);
    expect(() => check({ port: 9000 }, range(8999, 9001))).toThrow('allowedPorts[1] must not overlap allowedPorts[0].');
  });

  it('are not the port that is reserved, nor a range that ends before it begins', () => {
    expect(() => check({ port: 8443 })).toThrow('allowedPorts[0] must not have 8443, which is reserved.');
    expect(() => check(range(8000, 9000))).toThrow('8443');
    expect(() => check(range(9001, 9000))).toThrow('must not end below where it begins');
  });
});
