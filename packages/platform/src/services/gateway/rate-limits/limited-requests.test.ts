import type { control } from '@agentplatform/contract';
import { describe, expect, it } from 'vitest';
import type { IamPrincipal, Principal } from '../../../kernel/auth/index.ts';
import { checkRateLimit } from './check-rate-limit.ts';
import { LimitedRequests } from './limited-requests.ts';
import { openLimit } from './open-limit.ts';
import type { Bucket } from './permits.ts';
import type { Traffic } from './traffic.ts';

const role: IamPrincipal = {
  ...{ kind: 'iam', accountId: '1', accessKeyId: 'A', tags: {} },
  arn: 'arn:aws:sts::111122223333:assumed-role/Caller/session-7',
};
const person = {
  ...{ kind: 'oauth', accountId: '1', issuer: 'i', vouchedBy: 'i', subject: 'ada', token: 't', digest: 'd' },
  claims: { sub: 'ada', 'https://x/team': 'red', org: { unit: 'tea' }, level: 3 },
} as Principal;

const traffic = (more: Partial<Traffic> = {}): Traffic => ({ principal: role, headers: {}, body: undefined, ...more });

const limit = (dimensionKeys: string[], entries: control.LimitEntry[], id = 'few') =>
  openLimit({ ...{ gatewayArn: 'arn', id, dimensionKeys, entries, createdAt: 0, updatedAt: 0 } });

/** Takes everything, and notes it; what stands in `full` is refused. */
function counting(full: readonly string[] = []) {
  const taken: string[] = [];
  const ended: string[] = [];
  const take = async ({ key, rate }: Bucket) => {
    const [, id, of, , ...values] = JSON.parse(key);
    const said = `${id} ${of} ${rate} ${values.join('|')}`;
    if (full.includes(id)) throw new Error(`${id} is full`);
    taken.push(said);
    return (used?: number) => void ended.push(used === undefined ? said : `${said} used ${used}`);
  };
  const charge = ({ key }: Bucket, count: number) => void ended.push(`${JSON.parse(key)[1]} charged ${count}`);
  return { taken, ended, limited: new LimitedRequests({ permits: { take, charge }, connections: { take } }) };
}

const requests = (rate: number): control.RateConfig[] => [{ rate, period: 'minute' }];

describe('the entry that counts', () => {
  const perTool = limit(
    ['targetName', 'toolName'],
    [
      { dimensions: { targetName: 'shop', toolName: 'shop___buy' }, requests: requests(1) },
      { dimensions: { targetName: 'shop', toolName: '*' }, requests: requests(2) },
      { dimensions: { targetName: '*', toolName: '*' }, requests: requests(3) },
    ],
  );

  it.each([
    ['shop', 'shop___buy', 1],
    ['shop', 'shop___look', 2],
    ['bank', 'bank___pay', 3],
  ])('of %s %s is the one with the fewest wildcards', async (targetName, toolName, rate) => {
    const { taken, limited } = counting();
    await limited.admit([perTool], [traffic({ targetName, toolName })]);
    expect(taken).toEqual([`few requests ${rate} ${targetName}|${toolName}`]);
  });

  it('is none where the request has nothing at a dimension, or no entry is for it', async () => {
    const { taken, limited } = counting();
    await limited.admit([perTool], [traffic()]);
    await limited.admit(
      [limit(['targetName'], [{ dimensions: { targetName: 'bank' }, requests: requests(1) }])],
      [traffic({ targetName: 'shop' })],
    );
    expect(taken).toEqual([]);
  });
});

it.each<[string, Partial<Traffic>, string]>([
  ['$.context.iam.principal', {}, 'arn:aws:iam::111122223333:role/Caller'],
  ['$.context.iam.sourceIdentity', { principal: { ...role, sourceIdentity: 'ann@example.com' } }, 'ann@example.com'],
  ['$.context.jwt.sub', { principal: person }, 'ada'],
  ['$.context.jwt.org.unit', { principal: person }, 'tea'],
  ['$.context.jwt.level', { principal: person }, '3'],
  ['$.context.request.header.X-Tier', { headers: { 'x-tier': 'gold' } }, 'gold'],
  ['$.context.request.body.params.name', { body: { params: { name: 'shop___buy' } } }, 'shop___buy'],
])('%s is what the request has there', async (key, more, value) => {
  const { taken, limited } = counting();
  await limited.admit([limit([key], [{ dimensions: { [key]: '*' }, requests: requests(5) }])], [traffic(more)]);
  expect(taken).toEqual([`few requests 5 ${value}`]);
});

it.each<[string, Partial<Traffic>]>([
  ['$.context.iam.principal', { principal: person }],
  ['$.context.iam.sourceIdentity', {}],
  ['$.context.iam.sourceIdentity', { principal: person }],
  ['$.context.jwt.sub', {}],
  ['$.context.jwt.constructor.name', { principal: person }],
  ['$.context.request.body.params.name', { body: [{ params: { name: 'x' } }] }],
  ['$.context.request.header.x-tier', {}],
])('%s is nothing where the request has none', async (key, more) => {
  const { taken, limited } = counting();
  await limited.admit([limit([key], [{ dimensions: { [key]: '*' }, requests: requests(5) }])], [traffic(more)]);
  expect(taken).toEqual([]);
});

it('every limit has to let a request through; what the others took for it is given back', async () => {
  const any = (id: string): ReturnType<typeof limit> =>
    limit(
      ['targetName'],
      [{ dimensions: { targetName: '*' }, requests: requests(5), connections: [{ rate: 2, period: 'second' }] }],
      id,
    );
  const { taken, ended, limited } = counting(['second']);
  await expect(limited.admit([any('first'), any('second')], [traffic({ targetName: 'shop' })])).rejects.toThrow(
    'second is full',
  );
  expect(taken).toEqual(['first connections 2 shop', 'first requests 5 shop']);
  expect(ended.toSorted()).toEqual(taken.toSorted());
});

it('a batch counts message by message, and as one connection; where one of it is refused none counts', async () => {
  const entries = [
    { dimensions: { toolName: '*' }, requests: requests(5), connections: [{ rate: 2, period: 'second' as const }] },
  ];
  const [a, b] = [traffic({ toolName: 'a' }), traffic({ toolName: 'b' })];
  const one = counting();
  await one.limited.admit([limit(['toolName'], entries)], [a, a, b]);
  expect(one.taken).toEqual([
    'few connections 2 a',
    'few requests 5 a',
    'few requests 5 a',
    'few connections 2 b',
    'few requests 5 b',
  ]);
  const other = counting(['few']);
  const perTarget = limit(['targetName'], [{ dimensions: { targetName: '*' }, requests: requests(5) }], 'first');
  const refused = [traffic({ targetName: 't' }), traffic({ targetName: 't', toolName: 'a' })];
  await expect(other.limited.admit([perTarget, limit(['toolName'], entries)], refused)).rejects.toThrow('few is full');
  expect(other.ended).toEqual(other.taken);
});

it('what carries on takes no connection', async () => {
  const entries = [
    { dimensions: { targetName: '*' }, requests: requests(5), connections: [{ rate: 2, period: 'second' as const }] },
  ];
  const { taken, limited } = counting();
  await limited.admit([limit(['targetName'], entries)], [traffic({ targetName: 'shop', carriesOn: true })]);
  expect(taken).toEqual(['few requests 5 shop']);
});

it('a value that is too long is known by its hash, and matches no entry but a wildcard', async () => {
  const long = 'x'.repeat(4_000_000);
  const exact = [
    { dimensions: { toolName: 'x'.repeat(256) }, requests: requests(1) },
    { dimensions: { toolName: '*' }, requests: requests(2) },
  ];
  const { taken, limited } = counting();
  for (const toolName of [long, `${long}y`]) await limited.admit([limit(['toolName'], exact)], [traffic({ toolName })]);
  expect(taken.map((one) => one.slice(0, 15))).toEqual(['few requests 2 ', 'few requests 2 ']);
  expect(new Set(taken.map((one) => one.length))).toEqual(new Set([15 + 257]));
  expect(new Set(taken).size).toBe(2);
});

it('a request that has ended leaves its connection, and has been counted', async () => {
  const one = limit(
    ['targetName'],
    [{ dimensions: { targetName: '*' }, requests: requests(5), connections: [{ rate: 2, period: 'second' }] }],
  );
  const { ended, limited } = counting();
  const { end } = await limited.admit([one], [traffic({ targetName: 'shop' })]);
  expect(ended).toEqual([]);
  end();
  expect(ended).toEqual(['few connections 2 shop']);
});

describe('the tokens of a request', () => {
  const one = limit(
    ['qualifiedModelId'],
    [{ dimensions: { qualifiedModelId: 'a/small' }, tokens: [{ rate: 100, period: 'minute' as const }] }],
  );
  const asking = traffic({ qualifiedModelId: 'a/small', tokens: 30 });

  it('are held until it ends, and then those that it took count, of all answers', async () => {
    const { taken, ended, limited } = counting();
    const { used, end } = await limited.admit([one], [asking]);
    expect(taken).toEqual(['few tokens 100 a/small']);
    used(7);
    used(5);
    expect(ended).toEqual([]);
    end();
    end();
    expect(ended).toEqual(['few tokens 100 a/small used 12']);
  });

  it('count also where they are told of after its end', async () => {
    const { ended, limited } = counting();
    const { used, end } = await limited.admit([one], [asking]);
    end();
    used(9);
    expect(ended).toEqual(['few tokens 100 a/small used 0', 'few charged 9']);
  });

  it('are none where it asks no model', async () => {
    const { taken, limited } = counting();
    await limited.admit([one], [traffic({ qualifiedModelId: 'a/small' })]);
    expect(taken).toEqual([]);
  });
});

describe('a rate limit', () => {
  const entry = (dimensions: Record<string, string>) => ({ dimensions, requests: requests(1) });

  it.each<[string, string[], control.LimitEntry[], string]>([
    ['a dimension twice', ['targetName', 'targetName'], [entry({ targetName: 'a' })], 'dimensionKeys'],
    ['a value for another dimension', ['targetName'], [entry({ toolName: 'a' })], 'entries.0.dimensions'],
    ['no value for a dimension', ['targetName', 'toolName'], [entry({ targetName: 'a' })], 'entries.0.dimensions'],
    [
      'a wildcard before a value',
      ['targetName', 'toolName'],
      [entry({ targetName: '*', toolName: 'a' })],
      'entries.0.dimensions',
    ],
    [
      'the same values twice',
      ['targetName'],
      [entry({ targetName: 'a' }), entry({ targetName: 'a' })],
      'entries.1.dimensions',
    ],
    ['nothing to limit', ['targetName'], [{ dimensions: { targetName: 'a' } }], 'entries.0'],
    [
      'a part of a request',
      ['targetName'],
      [{ dimensions: { targetName: 'a' }, requests: requests(0.5) }],
      'entries.0.requests',
    ],
    [
      'a header twice',
      ['$.context.jwt.sub', '$.context.request.header.X-Tier', '$.context.request.header.x-tier'],
      [],
      'dimensionKeys',
    ],
    [
      'connections a minute',
      ['targetName'],
      [{ dimensions: { targetName: 'a' }, connections: requests(1) }],
      'entries.0.connections',
    ],
    [
      'only what a caller says himself',
      ['$.context.request.header.x-tier'],
      [entry({ '$.context.request.header.x-tier': '*' })],
      'dimensionKeys',
    ],
  ])('with %s is refused', (_, dimensionKeys, entries, field) => {
    expect(() => checkRateLimit({ dimensionKeys, entries })).toThrow(field);
  });

  it('with what a caller says beside what proves who he is stands', () => {
    const keys = ['$.context.jwt.sub', '$.context.request.header.x-tier'];
    const dimensions = { '$.context.jwt.sub': 'ada', '$.context.request.header.x-tier': '*' };
    expect(() => checkRateLimit({ dimensionKeys: keys, entries: [entry(dimensions)] })).not.toThrow();
  });
});
