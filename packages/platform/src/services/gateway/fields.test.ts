import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { refuseUnserved } from '../../kernel/served-fields.ts';
import { ENGINE_FIELDS, GENERATION_FIELDS, POLICY_FIELDS } from '../policy/policy-fields.ts';
import { GATEWAY_FIELDS } from './gateways/gateway-fields.ts';
import { RATE_LIMIT_FIELDS } from './rate-limits/index.ts';
import { RULE_FIELDS } from './rules/index.ts';
import { TARGET_FIELDS } from './targets/target-fields.ts';

interface Shape {
  type: string;
  members?: Record<string, { shape: string }>;
  /** Of a list. */
  member?: { shape: string };
}
const model = JSON.parse(
  readFileSync(new URL('../../../../contract/src/generated/model.json', import.meta.url), 'utf8'),
) as { planes: { control: { shapes: Record<string, Shape> } } };
const { shapes } = model.planes.control;

/** What is inside of a structure, and of a list of structures; undefined for a leaf. */
function membersOf(name: string): Record<string, { shape: string }> | undefined {
  const { type, member, members } = shapes[name] ?? {};
  if (type === 'list') return member && membersOf(member.shape);
  return type === 'structure' || type === 'union' ? members : undefined;
}

/** The leaves of a request that have no line of their own, but for those below a field that is refused whole. What is inside of itself is a leaf there. */
function leavesWithoutLine(
  name: string,
  path: string,
  table: Readonly<Record<string, string>>,
  around: readonly string[] = [],
): string[] {
  return Object.entries(membersOf(name) ?? {}).flatMap(([member, { shape }]): string[] => {
    const at = path === '' ? member : `${path}.${member}`;
    if (Object.hasOwn(table, at) && table[at] !== 'served') return [];
    if (Object.keys(membersOf(shape) ?? {}).length > 0 && !around.includes(shape))
      return leavesWithoutLine(shape, at, table, [...around, shape]);
    return Object.hasOwn(table, at) ? [] : [at];
  });
}

/** Whether the model has that path. */
function has(name: string, [member = '', ...rest]: readonly string[]): boolean {
  const found = membersOf(name)?.[member];
  return found !== undefined && (rest.length === 0 || has(found.shape, rest));
}

describe.each([
  { table: GATEWAY_FIELDS, requests: ['CreateGatewayRequest', 'UpdateGatewayRequest'] },
  { table: ENGINE_FIELDS, requests: ['CreatePolicyEngineRequest', 'UpdatePolicyEngineRequest'] },
  { table: POLICY_FIELDS, requests: ['CreatePolicyRequest', 'UpdatePolicyRequest'] },
  { table: GENERATION_FIELDS, requests: ['StartPolicyGenerationRequest'] },
  { table: RULE_FIELDS, requests: ['CreateGatewayRuleRequest', 'UpdateGatewayRuleRequest'] },
  { table: TARGET_FIELDS, requests: ['CreateGatewayTargetRequest', 'UpdateGatewayTargetRequest'] },
  {
    table: RATE_LIMIT_FIELDS,
    requests: ['CreateGatewayRateLimitRequest', 'UpdateGatewayRateLimitRequest', 'BatchPutGatewayRateLimitsRequest'],
  },
])('the fields of $requests', ({ table, requests }) => {
  it('each have a line, down to the last, or one above them that refuses them all', () => {
    expect(requests.flatMap((request) => leavesWithoutLine(request, '', table))).toEqual([]);
  });

  it('are those of the model', () => {
    const unknown = Object.keys(table).filter((line) => !requests.some((request) => has(request, line.split('.'))));
    expect(unknown).toEqual([]);
  });

  it('are refused by name where they are not served', () => {
    for (const [line, state] of Object.entries(table)) {
      const call = line.split('.').reduceRight<unknown>((value, member) => ({ [member]: value }), 'given') as object;
      if (state === 'served') expect(() => refuseUnserved(call, table), line).not.toThrow();
      else expect(() => refuseUnserved(call, table), line).toThrow(line);
    }
  });
});

it('nothing is no field', () => {
  expect(() => refuseUnserved({ kmsKeyArn: undefined, interceptorConfigurations: [] }, GATEWAY_FIELDS)).not.toThrow();
});
