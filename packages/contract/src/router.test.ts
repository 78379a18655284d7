import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { operations } from './generated/operations.ts';
import { matchRoute } from './router.ts';

const all = Object.values(operations);
const segments = (path: string): string[] => path.split('/').filter((s) => s !== '');
const isLabel = (segment: string): boolean => segment.startsWith('{');

/** Whether some path leads to both templates although neither is the more special one at the first difference. */
function ambiguous(a: string, b: string): boolean {
  const [left, right] = [segments(a), segments(b)];
  if (left.length !== right.length) return false;
  const steps = left.map((segment, i) => [segment, right[i] ?? ''] as const);
  if (steps.some(([x, y]) => !isLabel(x) && !isLabel(y) && x !== y)) return false;
  const specials = steps.filter(([x, y]) => isLabel(x) !== isLabel(y)).map(([x]) => isLabel(x));
  return specials.length === 0 || new Set(specials).size > 1;
}

describe('router', () => {
  it('has no two operations that a request could mean alike', () => {
    expect(ambiguous('/a/{x}/', '/a/{y}')).toBe(true);
    expect(ambiguous('/a/{x}/c', '/a/b/{y}')).toBe(true);
    expect(ambiguous('/a/{x}', '/a/b')).toBe(false);
    const clashes = all.flatMap((a) =>
      all
        .filter((b) => a.name < b.name && a.method === b.method && ambiguous(a.path, b.path))
        .map((b) => `${a.name} ${b.name}`),
    );
    expect(clashes).toEqual([]);
  });

  it('leads every path to its operation and labels, with and without a slash at the end', () => {
    const label = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 20 })
      .map((text) => `x${encodeURIComponent(text)}`);
    fc.assert(
      fc.property(
        fc.constantFrom(...all),
        fc.array(label, { minLength: 6, maxLength: 6 }),
        fc.boolean(),
        (operation, values, slash) => {
          const labels: Record<string, string> = {};
          const path = segments(operation.path).map((segment) => {
            if (!isLabel(segment)) return segment;
            const name = segment.slice(1, -1);
            labels[name] = values[Object.keys(labels).length] ?? 'x';
            return labels[name];
          });
          const raw = `/${path.join('/')}${slash ? '/' : ''}`;
          expect(matchRoute(operation.method, raw)).toEqual({ operation: operation.name, labels });
        },
      ),
      { numRuns: 1000, seed: 1 },
    );
  });

  it('leaves labels encoded, and takes colons as they are', () => {
    const arn = 'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime%2Fhello-a1b2c3d4e5';
    expect(matchRoute('POST', `/runtimes/${arn}/invocations`)).toEqual({
      operation: 'InvokeAgentRuntime',
      labels: { agentRuntimeArn: arn },
    });
  });

  it.each([
    ['GET', '/'],
    ['GET', ''],
    ['GET', 'runtimes'],
    ['POST', '//invocations'],
    ['POST', '/runtimes//invocations'],
    ['TRACE', '/runtimes'],
    ['POST', '/runtimes/x/invocations/y/z'],
    ['GET', '/memories/x/actor/a/sessions'],
    ['constructor', '/runtimes'],
    ['GET', '/__proto__'],
  ])('has nothing at %s %s', (method, path) => {
    expect(matchRoute(method, path)).toBeUndefined();
  });

  it('never throws', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.array(fc.constantFrom('/', 'runtimes', 'memories', '%', '..', 'é', ':'), { maxLength: 60 }),
        (method, parts) => {
          matchRoute(method, parts.join(''));
        },
      ),
    );
  });
});
