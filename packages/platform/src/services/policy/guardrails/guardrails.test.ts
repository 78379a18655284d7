import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import fc from 'fast-check';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../kernel/clock.ts';
import { createOutbound, type Outbound } from '../../../kernel/outbound/index.ts';
import type { LoadedSet } from '../engine/door.ts';
import { bedrockGuardrails, bedrockScores } from './bedrock.ts';
import { BUILT_IN_CATEGORIES, builtInGuardrails } from './built-in.ts';
import { GuardrailScores } from './guardrail-scores.ts';
import { type GuardrailCheck, type GuardrailProvider, scoresOf } from './guardrails.ts';
import { moderationGuardrails, moderationScores } from './moderation.ts';

const { signal } = new AbortController();
const sensitive = (category: string, text: string): GuardrailCheck => ({
  ...{ type: 'SensitiveInformation', categories: [category], texts: ['nothing', text] },
});
const score = async (category: string, text: string) =>
  (await scoresOf(builtInGuardrails, sensitive(category, text), signal))[category];

describe('the built-in guardrail', () => {
  it.each([
    ['EMAIL', 'write to ada@example.com today', 'write to ada at example'],
    ['CREDIT_DEBIT_CARD_NUMBER', 'card 4111 1111 1111 1111', 'card 4111 1111 1111 1112'],
    ['CREDIT_DEBIT_CARD_NUMBER', 'card ４１１１１１１１１１１１１１１１', 'order 1234567890123'],
    ['CREDIT_DEBIT_CARD_NUMBER', 'card 4111\u200b1111\u200b1111\u200b1111', 'card 4111'],
    ['US_SOCIAL_SECURITY_NUMBER', 'ssn 219-09-9999', 'ssn 666-09-9999'],
    ['INTERNATIONAL_BANK_ACCOUNT_NUMBER', 'GB82 WEST 1234 5698 7654 32', 'GB82 WEST 1234 5698 7654 33'],
    ['US_BANK_ROUTING_NUMBER', 'routing 021000021', 'routing 021000022'],
    ['IP_ADDRESS', 'host 10.1.2.3', 'version 10.1.2.300'],
    ['MAC_ADDRESS', 'mac 00:1a:2b:3c:4d:5e', 'time 00:1a:2b'],
    ['AWS_ACCESS_KEY', 'AKIAIOSFODNN7EXAMPLE', 'AKIAIOS'],
    ['PASSWORD', 'password: hunter22', 'the password policy'],
  ])('sees %s in "%s", and not in "%s"', async (category, text, other) => {
    expect(await score(category, text)).toBe(1);
    expect(await score(category, other)).toBe(0);
  });

  it.each([
    { type: 'PromptAttack', categories: ['JAILBREAK'], texts: ['x'] },
    { type: 'ContentFilter', categories: ['VIOLENCE'], texts: ['x'] },
    { type: 'SensitiveInformation', categories: ['NAME'], texts: ['x'] },
    { type: 'SensitiveInformation', categories: ['EMAIL', 'toString'], texts: ['x'] },
    { type: 'SensitiveInformation', categories: ['EMAIL'], texts: ['x'.repeat(100_001)] },
  ] as const)('says that it does not see $type $categories', async (check) => {
    await expect(scoresOf(builtInGuardrails, check, signal)).rejects.toThrow();
  });

  it('looks at any text in time', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ maxLength: 2000 }), async (text) => {
        for (const category of BUILT_IN_CATEGORIES) expect([0, 1]).toContain(await score(category, text));
      }),
      { seed: 17, numRuns: 50 },
    );
    const hostile = ['1-'.repeat(40_000), 'a@'.repeat(40_000), '1.'.repeat(40_000), 'GB82 '.repeat(16_000)];
    for (const text of hostile) for (const category of BUILT_IN_CATEGORIES) await score(category, text);
  });
});

describe('a moderation service', () => {
  const check: GuardrailCheck = { type: 'ContentFilter', categories: ['VIOLENCE', 'HATE'], texts: ['a', 'b'] };
  const result = (category_scores: object) => ({ category_scores });

  it('has the highest score over all texts and names', () => {
    const answer = {
      results: [result({ violence: 0.1, hate: 0 }), result({ violence: 0.2, 'violence/graphic': 0.9, HATE: 0.5 })],
    };
    expect(moderationScores(check, answer)).toEqual({ VIOLENCE: 0.9, HATE: 0.5 });
  });

  it.each([
    ['is no answer', null],
    ['looked at one of two texts', { results: [result({ violence: 1 })] }],
  ])('that %s has no score', (_, answer) => {
    expect(() => moderationScores(check, answer)).toThrow();
  });

  it('that does not name a category has no score for it', async () => {
    const answer = { results: [result({ violence: 0.1 }), result({ violence: 0.1 })] };
    expect(moderationScores(check, answer)).toEqual({ VIOLENCE: 0.1 });
    const provider = { score: async () => moderationScores(check, answer) };
    await expect(scoresOf(provider, check, signal)).rejects.toThrow(/HATE/);
  });
});

it('Bedrock: the highest score of each category; an answer without the check has looked at nothing', () => {
  const check: GuardrailCheck = { type: 'PromptAttack', categories: ['JAILBREAK'], texts: ['x'] };
  const results = [0.2, 0.8, 0.4].map((severityScore) => ({ category: 'JAILBREAK', severityScore }));
  expect(bedrockScores(check, { results: { promptAttack: { results } } })).toEqual({ JAILBREAK: 0.8 });
  expect(bedrockScores(check, { results: { promptAttack: { results: [] } } })).toEqual({});
  for (const answer of [null, {}, { results: { contentFilter: { results } } }])
    expect(() => bedrockScores(check, answer)).toThrow();
  const pii = sensitive('EMAIL', 'x');
  const found = [{ type: 'EMAIL', confidenceScore: 0.9, beginOffset: 0 }];
  expect(bedrockScores(pii, { results: { sensitiveInformation: { results: found } } })).toEqual({ EMAIL: 0.9 });
  expect(bedrockScores(pii, { results: { sensitiveInformation: { results: [] } } })).toEqual({ EMAIL: 0 });
});

describe('a service that is asked over HTTP', () => {
  let server: Server;
  let outbound: Outbound;
  let url: string;
  let answer: { status: number; body: string };
  let asked: { url: string; headers: IncomingHttpHeaders; body: unknown }[] = [];
  beforeAll(async () => {
    server = createServer(async (req, res) => {
      asked.push({ url: req.url ?? '', headers: req.headers, body: await json(req) });
      res.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body);
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    outbound = createOutbound({ clock: systemClock, allowPrivate: ['127.0.0.0/8'] });
  });
  afterAll(async () => {
    await outbound?.close();
    server?.close();
  });

  const says = (body: unknown, status = 200) => {
    asked = [];
    answer = { status, body: typeof body === 'string' ? body : JSON.stringify(body) };
  };
  const options = () => ({
    url,
    key: 'the-key',
    model: 'omni',
    outbound,
  });
  const violence: GuardrailCheck = { type: 'ContentFilter', categories: ['VIOLENCE'], texts: ['some text'] };

  it('moderation: POST /moderations with model, texts and key', async () => {
    says({ results: [{ category_scores: { violence: 0.7 } }] });
    expect(await scoresOf(moderationGuardrails(options()), violence, signal)).toEqual({ VIOLENCE: 0.7 });
    expect(asked).toMatchObject([
      {
        ...{ url: '/v1/moderations', body: { model: 'omni', input: ['some text'] } },
        headers: { authorization: 'Bearer the-key' },
      },
    ]);
    // Sensitive data does not leave the platform.
    says('never asked');
    expect(await scoresOf(moderationGuardrails(options()), sensitive('EMAIL', 'ada@example.com'), signal)).toEqual({
      EMAIL: 1,
    });
    expect(asked).toEqual([]);
  });

  it('Bedrock: InvokeGuardrailChecks with the check that is needed', async () => {
    says({ results: { contentFilter: { results: [{ category: 'VIOLENCE', severityScore: 0.4 }] } } });
    expect(await scoresOf(bedrockGuardrails(options()), violence, signal)).toEqual({ VIOLENCE: 0.4 });
    expect(asked).toMatchObject([
      {
        url: '/v1/guardrail-checks/invoke',
        body: {
          checks: { contentFilter: { categories: [{ category: 'VIOLENCE' }] } },
          messages: [{ role: 'user', content: [{ text: 'some text' }] }],
        },
      },
    ]);
  });

  it.each([
    ['answers 500', '{}', 500],
    ['answers no JSON', 'tea', 200],
    ['has looked at nothing', { results: [] }, 200],
    ['has a score that is none', { results: [{ category_scores: { violence: 7 } }] }, 200],
    ['answers without end', `"${'x'.repeat(2 ** 20)}"`, 200],
  ])('has no score where it %s: what needs it is denied', async (_, body, status) => {
    says(body, status);
    for (const provider of [moderationGuardrails(options()), bedrockGuardrails(options())])
      await expect(scoresOf(provider, violence, signal)).rejects.toThrow();
  });

  it('that does not answer in time has no score, and its request is ended', async () => {
    let ended: unknown;
    const hangs: GuardrailProvider = {
      score: (_check, given) =>
        new Promise((_, reject) => {
          given.addEventListener('abort', () => {
            ended = given.reason;
            reject(new Error('ended'));
          });
        }),
    };
    let late: (() => void) | undefined;
    const after = (_ms: number, then: () => void) => {
      late = then;
      return () => undefined;
    };
    const scores = new GuardrailScores({ guardrails: hangs, clock: { after }, log: pino({ level: 'silent' }) });
    const need = { id: 'g', name: 'BedrockGuardrails::ContentFilter', args: [['VIOLENCE'], [{ field: ['input'] }]] };
    const set = { guardrails: [{ ...need, methods: [], actions: ['a'] }] } as unknown as LoadedSet;
    const found = scores.of(set, { action: 'a', requestId: 'r', signal }, { input: 'x' });
    late?.();
    expect(await found).toEqual({});
    expect(String(ended)).toContain('took too long');
  });
});
