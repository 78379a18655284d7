import type { control } from '@agentplatform/contract';
import { describe, expect, it } from 'vitest';
import { checkDefinition, openPortsOf } from './definition.ts';

const definition = (
  allowedPorts: control.AllowedPort[],
  customJWTAuthorizer?: control.CustomJWTAuthorizerConfiguration,
) => ({
  ...(customJWTAuthorizer && { authorizerConfiguration: { customJWTAuthorizer } }),
  agentRuntimeArtifact: { containerConfiguration: { containerUri: 'platform/agent' } },
  roleArn: 'arn:aws:iam::123456789012:role/agent',
  networkConfiguration: { networkMode: 'PUBLIC' } as const,
  allowedPorts,
});
const checkAll = (given: ReturnType<typeof definition>) =>
  checkDefinition(
    given,
    { idleSeconds: 900, maxLifetimeSeconds: 28_800 },
    { sessionLifetimeSeconds: 28_800, sandboxMemoryBytes: 2 ** 30 },
    () => undefined,
  );
const check = (...ports: control.AllowedPort[]) => checkAll(definition(ports));
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

it('authorizers that would let in more than they say are refused, with the field named', () => {
  const authorizer = {
    discoveryUrl: 'https://id.example.com/.well-known/openid-configuration',
    allowedClients: ['web'],
  };
  expect(() => checkAll(definition([], authorizer))).not.toThrow();
  const more = {
    privateEndpoint: { selfManagedLatticeResource: { resourceConfigurationIdentifier: 'rcfg-1' } },
  };
  for (const [field, value] of Object.entries(more))
    expect(() => checkAll(definition([], { ...authorizer, [field]: value }))).toThrow(
      `authorizerConfiguration.customJWTAuthorizer.${field} is not offered here`,
    );
});
