import { describe, expect, it } from 'vitest';
import { passes, readInsightsQuery, valueAt } from './insights-query.ts';

describe('a query of CloudWatch Logs Insights', () => {
  it('is read as the vendor’s evaluation client writes it, both ways', () => {
    expect(
      readInsightsQuery(`fields @timestamp, @message
        | filter @message like "s-1"
        | filter ispresent(scope.name)
        | sort @timestamp asc`),
    ).toEqual({
      fields: ['@timestamp', '@message'],
      conditions: [
        { kind: 'like', field: '@message', value: 's-1' },
        { kind: 'present', field: 'scope.name' },
      ],
      ...{ newestFirst: false, limit: 10_000 },
    });
    const { conditions, limit } = readInsightsQuery(
      'fields @message\n| filter attributes.session.id = "s-1"\n| limit 20',
    );
    expect(conditions).toEqual([{ kind: 'equals', field: 'attributes.session.id', value: 's-1' }]);
    expect(limit).toBe(20);
  });

  it.each([
    'stats count(*) by bin(1h)',
    'filter a = 1',
    'filter a like /x/',
    'parse @message "*"',
    'sort name asc',
    'limit x',
    'fields a b',
  ])('with another command is refused by its name: %s', (command) => {
    expect(() => readInsightsQuery(`fields @message | ${command}`)).toThrow(
      expect.objectContaining({ code: 'MalformedQueryException', message: expect.stringContaining(command) }),
    );
  });

  it('finds members by names with dots, and nothing of what all objects have', () => {
    const document = { scope: { name: 'own' }, attributes: { 'session.id': 's-1' } };
    expect(valueAt(document, 'attributes.session.id')).toBe('s-1');
    expect(valueAt(document, 'constructor.name')).toBeUndefined();
    const ask = (query: string): boolean =>
      passes(document, JSON.stringify(document), readInsightsQuery(query).conditions);
    expect(
      ask('filter ispresent(scope.name) | filter attributes.session.id = "s-1" | filter @message like "own"'),
    ).toBe(true);
    expect(ask('filter ispresent(spanId)')).toBe(false);
    expect(ask('filter attributes.session.id = "s"')).toBe(false);
  });
});
