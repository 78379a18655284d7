import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { refuseUnserved } from './fields.ts';
import { GATEWAY_FIELDS } from './gateways/gateway-fields.ts';
import { TARGET_FIELDS } from './targets/target-fields.ts';

interface Shape {
  type: string;
  members?: Record<string, { shape: string }>;
}
const model = JSON.parse(
  readFileSync(new URL('../../../../contract/src/generated/model.json', import.meta.url), 'utf8'),
) as { planes: { control: { shapes: Record<string, Shape> } } };
const { shapes } = model.planes.control;

/** Every path of a request, down to where the table says no more; what it says nothing of is told in `missing`. */
function walk(name: string, path: string, table: Readonly<Record<string, string>>, missing: string[]): void {
  for (const [member, { shape }] of Object.entries(shapes[name]?.members ?? {})) {
    const at = path === '' ? member : `${path}.${member}`;
    const below = Object.keys(table).some((line) => line.startsWith(`${at}.`));
    if (!Object.hasOwn(table, at) && !below) missing.push(at);
    else if (below) walk(shape, at, table, missing);
  }
}

/** Whether the model has that path. */
function has(name: string, [member = '', ...rest]: readonly string[]): boolean {
  const found = shapes[name]?.members?.[member];
  return found !== undefined && (rest.length === 0 || has(found.shape, rest));
}

describe.each([
  { table: GATEWAY_FIELDS, requests: ['CreateGatewayRequest', 'UpdateGatewayRequest'] },
  { table: TARGET_FIELDS, requests: ['CreateGatewayTargetRequest', 'UpdateGatewayTargetRequest'] },
])('the fields of $requests', ({ table, requests }) => {
  it('each have a line, or one above them', () => {
    const missing: string[] = [];
    for (const request of requests) walk(request, '', table, missing);
    expect(missing).toEqual([]);
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
