import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatArn, parseArn } from './arn.ts';
import { contractModel } from './model.ts';
import { wholeMatch } from './patterns.ts';
import { parseResourceArn, type ResourceKind, resourceArn, resourceKinds } from './resource-arn.ts';

const home = { region: 'us-east-1', accountId: '123456789012' };
const kinds = Object.keys(resourceKinds) as ResourceKind[];
const id = fc.stringMatching(/^[A-Za-z0-9_.-]{1,20}$/);

describe('ARNs', () => {
  it('are parsed into what they were made of', () => {
    fc.assert(
      fc.property(fc.constantFrom(...kinds), id, id, (kind, first, second) => {
        const ids = [first, second].slice(0, resourceKinds[kind].split('{}').length - 1);
        const arn = resourceArn(kind, home, ...ids);
        expect(parseResourceArn(arn)).toEqual({ kind, partition: 'aws', ...home, ids });
        const parts = parseArn(arn);
        expect(parts && formatArn(parts)).toBe(arn);
      }),
    );
  });

  it.each([
    ['AgentRuntimeArn', 'runtime', ['hello-a1B2c3D4e5']],
    ['AgentRuntimeEndpointArn', 'runtime-endpoint', ['hello-a1B2c3D4e5', 'DEFAULT']],
    ['MemoryArn', 'memory', ['facts-a1B2c3D4e5']],
    ['BrowserArn', 'browser-custom', ['shop-a1B2c3D4e5']],
    ['CodeInterpreterArn', 'code-interpreter-custom', ['py-a1B2c3D4e5']],
    ['BrowserProfileArn', 'browser-profile', ['me-a1B2c3D4e5']],
    ['HarnessArn', 'harness', ['helper-a1B2c3D4e5']],
    ['HarnessEndpointArn', 'harness-endpoint', ['helper-a1B2c3D4e5', 'DEFAULT']],
    ['PolicyEngineArn', 'policy-engine', ['engine-a1b2c3d4e5']],
    ['PolicyArn', 'policy', ['engine-a1b2c3d4e5', 'rule-a1b2c3d4e5']],
    ['RegistryArn', 'registry', ['a1B2c3D4e5f6']],
    ['RegistryRecordArn', 'registry-record', ['a1B2c3D4e5f6', 'a1B2c3D4e5f6']],
    ['DatasetArn', 'dataset', ['set_1']],
    ['ConfigurationBundleArn', 'configuration-bundle', ['bundle-a1B2c3D4e5']],
    ['OnlineEvaluationConfigArn', 'online-evaluation-config', ['watch-a1B2c3D4e5']],
    ['CapacityProviderArn', 'capacity-provider', ['pool-a1B2c3D4e5']],
    ['GatewayArn', 'gateway', ['tools-a1b2c3d4e5']],
  ] satisfies [string, ResourceKind, string[]][])('satisfy the model: %s', (shape, kind, ids) => {
    const { control } = contractModel().planes;
    const pattern = control.shapes[shape]?.pattern;
    expect(pattern, `no shape ${shape}`).toBeDefined();
    expect(resourceArn(kind, home, ...ids)).toMatch(wholeMatch(pattern ?? ''));
  });

  it.each([
    '',
    'arn',
    'arn:aws:s3:::bucket',
    'arn:aws:bedrock-agentcore:us-east-1:12345:runtime/x',
    'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/',
    'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/a/b',
    'arn:aws:bedrock-agentcore:us-east-1:123456789012:unknown/a',
    'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/a b',
    ' arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/a',
    `arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/${'a'.repeat(3000)}`,
  ])('are not seen in %j', (text) => expect(parseResourceArn(text)).toBeUndefined());

  it('are not made of wrong identifiers', () => {
    expect(() => resourceArn('runtime', home)).toThrow(RangeError);
    expect(() => resourceArn('runtime', home, 'a', 'b')).toThrow(RangeError);
    expect(() => resourceArn('runtime', home, 'a/runtime-endpoint/b')).toThrow(RangeError);
    expect(() => resourceArn('runtime', home, '')).toThrow(RangeError);
  });
});
