import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { IamPrincipal, Principal } from '../../../kernel/auth/index.ts';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import type { Model, ModelEvent, ModelRequest } from '../../../kernel/models/index.ts';
import type { Bucket, Permits } from '../rate-limits/index.ts';
import { AnswerCache, cacheKey } from './answer-cache.ts';
import { Budgets } from './budgets.ts';
import { type Budget, NO_GUARD_RAILS, REDACTIONS } from './guard-rails.ts';
import { guardedModel } from './guarded-model.ts';
import { readGuardRails } from './read-guard-rails.ts';
import { redacted } from './redaction.ts';

describe('what a body asks for', () => {
  it('is nothing where it says nothing, and what it says', () => {
    expect(readGuardRails({})).toEqual(NO_GUARD_RAILS);
    const budgets = [{ per: 'caller', tokens: 5, period: 'day' }];
    expect(readGuardRails({ budgets, cacheSeconds: 60, log: true, redact: ['card', 'email'] })).toEqual({
      ...{ budgets: [{ per: 'caller', of: '*', tokens: 5, period: 'day' }], cacheSeconds: 60, log: true },
      ...{ redact: ['email', 'card'], redactRequests: false },
    });
  });

  const budget = { per: 'caller', tokens: 5, period: 'day' };
  it.each([
    ['budgets', { budgets: 'many' }],
    ['budgets', { budgets: [budget, budget] }],
    ['budgets[0].per', { budgets: [{ ...budget, per: 'team' }] }],
    ['budgets[0].period', { budgets: [{ ...budget, period: 'hour' }] }],
    ['budgets[0].of', { budgets: [{ ...budget, of: '' }] }],
    ['budgets[0].tokens', { budgets: [{ ...budget, tokens: -1 }] }],
    ['cacheSeconds', { cacheSeconds: 86_401 }],
    ['log', { log: 'yes' }],
    ['redact', { redact: ['names'] }],
    ['prices', { prices: 1 }],
  ])('is refused for %s: %j', (field, members) => {
    expect(() => readGuardRails(members)).toThrow(field);
  });
});

describe('redaction', () => {
  it.each([
    ['write to ann.b+c@mail.example.com.', 'write to [email].'],
    ['pay with 4111 1111 1111 1111 now', 'pay with [card] now'],
    ['order 4111 1111 1111 1112', 'order 4111 1111 1111 1112'],
    ['call +49 (30) 1234-567', 'call [phone]'],
    ['key sk-abcdefghijklmnopqrst\nAKIAIOSFODNN7EXAMPLE', 'key [secret]\n[secret]'],
    ['eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM.c2lnbmF0dXJl', '[secret]'],
    ['Version 1.2.3 of a@b, 12:30, 2026-11-26', 'Version 1.2.3 of a@b, 12:30, 2026-11-26'],
  ])('of %j', (text, expected) => {
    expect(redacted(text, REDACTIONS)).toBe(expected);
    expect(redacted(text, [])).toBe(text);
  });

  it('finds an address wherever it stands, and once is enough', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (before, after) => {
        const text = redacted(`${before} ann@mail.example.com ${after}`, REDACTIONS);
        expect(text).not.toContain('ann@mail.example.com');
        expect(redacted(text, REDACTIONS)).toBe(text);
      }),
      { seed: 16 },
    );
  });

  it.each(['eyJ-', 'a@', 'a.', '1 ', '+1(', 'sk-', 'a@a.'])('of %j again and again ends', (part) => {
    expect(redacted(part.repeat(100_000), REDACTIONS).length).toBeGreaterThan(0);
  });
});

const ann: IamPrincipal = {
  ...{ kind: 'iam', accountId: '1', arn: 'arn:aws:iam::1:user/ann', accessKeyId: 'AKANN', tags: {} },
};

describe('budgets', () => {
  const take = vi.fn<Permits['take']>();
  const charge = vi.fn<Permits['charge']>();
  const budgets = new Budgets({ permits: { take, charge } });
  const hold = (given: Budget[], principal: Principal = ann) =>
    budgets.hold({ ...NO_GUARD_RAILS, budgets: given }, { gatewayArn: 'arn', principal, tokens: () => 40 });
  const budget = (more: Partial<Budget> = {}): Budget => ({
    per: 'caller',
    of: '*',
    tokens: 100,
    period: 'day',
    ...more,
  });

  it('that name a caller or a key count before those for everybody, one for each period', async () => {
    take.mockReset().mockResolvedValue(() => undefined);
    await hold([
      ...[budget({ of: ann.arn, tokens: 7 }), budget(), budget({ period: 'month', tokens: 9 })],
      ...[budget({ per: 'key', of: 'AKANN', tokens: 8 }), budget({ per: 'key', of: 'AKBOB' })],
    ]);
    expect(take.mock.calls.map(([{ rate, of }, tokens]) => [rate, of, tokens])).toEqual([
      ...[
        [7, 'tokens', 40],
        [9, 'tokens', 40],
        [8, 'tokens', 40],
      ],
    ]);
    const keys = new Set(take.mock.calls.map(([{ key }]) => key));
    expect(keys.size).toBe(3);
  });

  it('of tokens are counted by subject, and by the client that they are for', async () => {
    const buckets: Bucket[] = [];
    take.mockReset().mockImplementation(async (bucket) => {
      buckets.push(bucket);
      return () => undefined;
    });
    const of = (subject: string, client_id?: string) =>
      ({ kind: 'oauth', accountId: '1', subject, claims: { client_id } }) as unknown as Principal;
    const both = [budget(), budget({ per: 'key' })];
    await hold(both, of('a', 'app'));
    await hold(both, of('b', 'app'));
    await hold(both, of('b'));
    expect(new Set(buckets.map(({ key }) => key)).size).toBe(3);
    expect(buckets).toHaveLength(5);
  });

  it('are given back what was held for a request that another budget refuses', async () => {
    const settle = vi.fn();
    take.mockReset().mockResolvedValueOnce(settle).mockRejectedValueOnce(new Error('full'));
    await expect(hold([budget(), budget({ period: 'month' })])).rejects.toThrow('full');
    expect(settle).toHaveBeenCalledWith(0);
  });

  it('are told what was taken, also after the end', async () => {
    const settle = vi.fn();
    take.mockReset().mockResolvedValue(settle);
    const { used, end } = await hold([budget()]);
    used(30);
    end();
    used(5);
    expect(settle.mock.calls).toEqual([[30]]);
    expect(charge.mock.calls.map(([, count]) => count)).toEqual([5]);
  });
});

describe('kept answers', () => {
  it('are given for their time, and are bounded', async () => {
    const clock = new FakeClock();
    const cache = new AnswerCache(clock);
    const answer = { headers: {}, body: 'tea' };
    cache.set('a', answer, 60);
    cache.set('large', { headers: {}, body: 'x'.repeat(2 ** 20) }, 60);
    expect([cache.get('a')?.body, cache.get('large')]).toEqual(['tea', undefined]);
    await clock.advance(60_000);
    expect(cache.get('a')).toBeUndefined();
  });

  it('have keys that differ where any part does, wherever parts end', () => {
    const keys = [
      ['a', 'b'],
      ['ab', ''],
      ['', 'ab'],
      ['a', 'c'],
    ].map(cacheKey);
    expect(new Set(keys).size).toBe(4);
    expect(cacheKey(['a', 'b'])).toBe(cacheKey(['a', Buffer.from('b')]));
  });
});

describe('a guarded model', () => {
  const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 };
  const request: ModelRequest = {
    system: 'Ann is ann@mail.example.com',
    messages: [
      { role: 'user', content: [{ type: 'file', mediaType: 'image/png', data: new Uint8Array(3) }] },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'bob@mail.example.com', signature: 's' },
          { type: 'tool-call', id: 'c', name: 'find', input: { by: 'x\nsk-abcdefghijklmnopqrst' } },
        ],
      },
      {
        role: 'user',
        content: [{ type: 'tool-result', id: 'c', content: [{ type: 'json', value: ['+4930123456'] }] }],
      },
    ],
  };
  const seen: ModelRequest[] = [];
  const model: Model = {
    ...{ name: 'm', modelId: 'm', embed: async () => ({ vectors: [], tokens: 0 }) },
    async generate(given) {
      seen.push(given);
      return { content: [{ type: 'text', text: 'to ann@mail.example.com' }], stopReason: 'end', usage, modelId: 'm' };
    },
    async *stream(): AsyncGenerator<ModelEvent> {
      yield { type: 'delta', part: 0, delta: 'half of it' };
      throw new Error('cut');
    },
  };

  it('is logged nothing unless that is asked for', async () => {
    const log = vi.fn();
    await guardedModel(model, NO_GUARD_RAILS, log).generate(request);
    expect(log).not.toHaveBeenCalled();
    expect(seen.at(-1)).toBe(request);
  });

  it('is logged without what is taken out, whole and as far as a stream came', async () => {
    const log = vi.fn();
    const guarded = guardedModel(model, { ...NO_GUARD_RAILS, log: true }, log);
    await guarded.generate(request);
    expect(log.mock.calls[0]?.[0]).toEqual({
      answered: 'to [email]',
      failed: false,
      asked: [
        ...['system: Ann is [email]', 'user: (image/png)', 'assistant: [email]'],
        ...['assistant: find {"by":"x\\n[secret]"}', 'user: ["[phone]"]'],
      ].join('\n'),
    });
    const read = async () => {
      for await (const _ of guarded.stream(request));
    };
    await expect(read()).rejects.toThrow('cut');
    expect(log.mock.calls[1]?.[0]).toMatchObject({ answered: 'half of it', failed: true });
  });

  it('sees requests without it, too, where that is asked for; what is signed stays', async () => {
    await guardedModel(model, { ...NO_GUARD_RAILS, redactRequests: true }, () => undefined).generate(request);
    const said = JSON.stringify(seen.at(-1));
    for (const taken of ['ann@', 'sk-abc', '+4930']) expect(said).not.toContain(taken);
    expect(said).toContain('bob@mail.example.com');
  });
});
