import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shapeArbitraries } from '../../test/arbitraries.ts';
import { violated, violations } from '../../test/violations.ts';
import { wireRequest } from '../../test/wire.ts';
import { type FieldProblem, ServiceError } from '../errors.ts';
import { operations } from '../generated/operations.ts';
import type { OperationName } from '../generated/types.ts';
import { contractModel } from '../model.ts';
import { bodyRule, decodeRequest } from './codec.ts';

const seed = 20261121;
const names = Object.keys(operations) as OperationName[];
const model = contractModel().planes;
const arbitraries = {
  data: shapeArbitraries(model.data),
  control: shapeArbitraries(model.control),
  models: shapeArbitraries(model.models),
};

function failure(name: OperationName, input: unknown): ServiceError | undefined {
  try {
    decodeRequest(name, wireRequest(name, input as Record<string, unknown>));
    return undefined;
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
}

describe('validation', () => {
  const broken = new Map<string, number>();

  it.each(names)('%s: a broken rule is refused with its field named, a kept one is not', (name) => {
    const { plane, input: shape } = operations[name];
    for (const input of fc.sample(arbitraries[plane](shape), { numRuns: 4, seed })) {
      expect(failure(name, input)?.message, JSON.stringify(input)).toBeUndefined();
      for (const violation of violations(model[plane], shape, input)) {
        if (bodyRule(name).streams && ['payload', 'body'].includes(violation.field)) continue;
        const error = failure(name, violated(input, violation));
        const fields = (error?.members.fieldList ?? []) as unknown as FieldProblem[];
        const context = `${violation.rule} of ${violation.field}: ${error?.message}`;
        expect(error?.code, context).toBe('ValidationException');
        expect(error?.members.reason, context).toBe('FieldValidationFailed');
        expect(
          fields.map((field) => field.name),
          context,
        ).toContain(violation.field);
        broken.set(violation.rule, (broken.get(violation.rule) ?? 0) + 1);
      }
    }
  });

  it('was tried on every kind of rule', () => {
    const rules = ['enum', 'max', 'min', 'pattern', 'range', 'required', 'type', 'union none', 'union two', 'whole'];
    expect([...broken.keys()].sort()).toEqual(rules);
    for (const [rule, count] of broken) expect(count, rule).toBeGreaterThan(20);
  });
});
