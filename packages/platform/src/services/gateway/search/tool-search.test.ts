import { expect, it } from 'vitest';
import { systemClock } from '../../../kernel/clock.ts';
import type { Embedder } from '../../../kernel/embeddings/index.ts';
import { ModelError } from '../../../kernel/models/index.ts';
import { ResourceStore, storageMigrations } from '../../../kernel/storage/index.ts';
import { describeDatabases, silent } from '../../../kernel/storage/testing/databases.ts';
import { object, stored } from '../../../kernel/stored-shape.ts';
import { type OpenGateway, openGateway } from '../gateway-tools.ts';
import type { Gateway } from '../gateways/gateway.ts';
import { gatewayMigrations, readOffers, writeOffers } from '../tables.ts';
import { NO_OFFERS } from '../targets/offers.ts';
import type { LiveTarget } from '../targets/target.ts';
import type { Tool } from '../tools/index.ts';
import { ToolSearch } from './tool-search.ts';
import { ToolVectors } from './tool-vectors.ts';

/** Words that mean the same. */
const MEANINGS = [
  ['cancel', 'revoke', 'undo'],
  ['order', 'purchase'],
  ['weather', 'forecast'],
  ['invoice', 'bill'],
];

/** A direction for each meaning. `hold` keeps its answers back; texts with `unspeakable` are refused. */
function fakeModel(model = 'fake') {
  const asked: string[] = [];
  let held: Promise<void> = Promise.resolve();
  const vector = (text: string): Float32Array => {
    const words = text.toLowerCase().split(/[^a-z]+/);
    const counts = [...MEANINGS.map((alike) => words.filter((word) => alike.includes(word)).length), 0.1];
    const length = Math.hypot(...counts);
    return Float32Array.from(counts, (count) => count / length);
  };
  const embedder: Embedder = {
    ...{ model, dimensions: MEANINGS.length + 1, close: async () => undefined },
    async embed(texts, signal) {
      await held;
      signal?.throwIfAborted();
      if (texts.some((text) => text.includes('unspeakable'))) throw new ModelError('no', { kind: 'refused' });
      asked.push(...texts);
      return texts.map(vector);
    },
  };
  const hold = (): (() => void) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    return resolve;
  };
  return { asked, hold, open: async () => embedder };
}

const tool = (name: string, description: string): Tool => ({
  ...{ name, description, inputSchema: { type: 'object' } },
  hints: { readOnly: true, destructive: false, idempotent: true },
});
const TOOLS = [tool('cancelOrder', 'Cancels an order.'), tool('getWeather', 'Tells the weather.')];

const definition = (searches: boolean) => ({
  ...{ roleArn: 'role', authorizerType: 'AWS_IAM' as const },
  ...(searches && { protocolConfiguration: { mcp: { searchType: 'SEMANTIC' as const } } }),
});

describeDatabases('search of tools', [...storageMigrations, ...gatewayMigrations], (database) => {
  const store = (kind: string) =>
    new ResourceStore<object>({ executor: database(), clock: systemClock, kind, ...stored(object({})) });
  let made = 0;

  /** A gateway with one target, as the tables hold it. */
  async function newGateway(tools: readonly Tool[], searches = true) {
    const id = `g${++made}`;
    const gateway: Gateway = {
      ...{ arn: `arn:gateway/${id}`, accountId: 'a', id, name: id, definition: definition(searches) },
      ...{ createdAt: 0, updatedAt: 0 },
    };
    const arn = `${gateway.arn}/target/t`;
    await store('gateway').create({ ...gateway, data: { definition: gateway.definition } });
    await store('gateway-target').create({ arn, accountId: 'a', id: 't', name: 't', parent: gateway.arn, data: {} });
    const target = { arn, name: 't', live: { targetConfiguration: {} } } as unknown as LiveTarget;
    const write = (now: readonly Tool[]) =>
      database().transaction((tx) => writeOffers(tx, arn, { ...NO_OFFERS, tools: [...now] }));
    await write(tools);
    const open = async (): Promise<OpenGateway> => openGateway(gateway, [target], await readOffers(database(), [arn]));
    return { gateway, arn, open, write };
  }

  function searchWith(openEmbedder?: () => Promise<Embedder>) {
    const vectors = new ToolVectors({ database: database(), openEmbedder, clock: systemClock, log: silent });
    const search = new ToolSearch({ vectors, log: silent });
    const find = async (open: OpenGateway, query: string) => {
      const { found, shortcoming } = await search.find(open, query, 10);
      return { names: found.map(({ listed }) => listed), shortcoming };
    };
    return { vectors, find, search };
  }

  const whole = (vectors: ToolVectors, gateway: Gateway) =>
    expect.poll(() => vectors.shortcoming(gateway), { timeout: 60_000 }).toBeUndefined();

  it('is by words without a model, while it is away and before there are vectors, and says so', async () => {
    const { open, gateway } = await newGateway(TOOLS);
    const without = searchWith();
    expect(await without.find(await open(), 'cancel my purchase')).toEqual({
      ...{ names: ['t___cancelOrder'], shortcoming: 'no embedding model is set up' },
    });
    expect(await without.find(await open(), 'revoke purchase')).toMatchObject({ names: [] });
    const away = searchWith(() => Promise.reject(new Error('away')));
    await away.vectors.start();
    expect((await away.find(await open(), 'cancel')).shortcoming).toContain('cannot be used now');
    await away.vectors.stop();
    const model = fakeModel();
    const release = model.hold();
    const slow = searchWith(model.open);
    await slow.vectors.start();
    await expect.poll(() => slow.vectors.embedder).toBeDefined();
    expect(await slow.find(await open(), 'cancel')).toEqual({
      ...{ names: ['t___cancelOrder'], shortcoming: '0 of 2 tools have their vectors so far' },
    });
    expect(await slow.vectors.shortcoming(gateway)).toBe('0 of 2 tools have their vectors so far');
    release();
    await whole(slow.vectors, gateway);
    await slow.vectors.stop();
  });

  it('finds a tool that shares no word with the query, and embeds what has changed alone', async () => {
    const { open, gateway, write } = await newGateway(TOOLS);
    const model = fakeModel('changes');
    const { vectors, find } = searchWith(model.open);
    await vectors.start();
    await whole(vectors, gateway);
    const before = await open();
    expect(await find(before, 'revoke my purchase')).toMatchObject({ shortcoming: undefined });
    expect((await find(before, 'revoke my purchase')).names[0]).toBe('t___cancelOrder');
    expect((await find(before, 'forecast')).names[0]).toBe('t___getWeather');

    const asked = () => model.asked.filter((text) => text.includes('. '));
    const first = asked().length;
    await write([...TOOLS.slice(1), tool('getInvoice', 'Gets an invoice.')]);
    vectors.wake();
    await whole(vectors, gateway);
    expect(asked().slice(first)).toEqual([expect.stringContaining('Gets an invoice.')]);
    expect((await find(await open(), 'bill')).names[0]).toBe('t___getInvoice');
    expect((await find(await open(), 'revoke my purchase')).names).not.toContain('t___cancelOrder');
    const kept = () =>
      database().query<{ count: number }>(
        'SELECT count(*)::int AS count FROM gateway_tool_vectors WHERE target_arn = $1',
        [`${gateway.arn}/target/t`],
      );
    expect(await kept()).toEqual([{ count: 2 }]);
    await store('gateway-target').delete(`${gateway.arn}/target/t`);
    expect(await kept()).toEqual([{ count: 0 }]);
    await vectors.stop();
  });

  it('looks at the first 20,000 tools of a gateway, and says so', async () => {
    const { gateway } = await newGateway([]);
    const target = { arn: `${gateway.arn}/target/t`, name: 't', live: { targetConfiguration: {} } };
    const tools = Array.from({ length: 20_002 }, (_, i) => tool(`n${String(i).padStart(5, '0')}`, `Is zebra${i}.`));
    const { search } = searchWith();
    for (const [count, seen] of [
      [20_000, undefined],
      [20_002, 'The search looks at the first 20000 of the 20002 tools of this gateway.'],
    ] as const) {
      const offers = new Map([[target.arn, { tools: tools.slice(0, count) }]]);
      const open = openGateway(gateway, [target as unknown as LiveTarget], offers);
      expect(await search.find(open, 'zebra19999', 10)).toMatchObject({ found: [{}], unsearched: seen });
      expect((await search.find(open, 'zebra20000', 10)).found).toEqual([]);
    }
  });

  it('goes on where a server ended, and looks at no gateway without search', async () => {
    const many = Array.from({ length: 200 }, (_, n) => tool(`tool${n}`, `Tells the weather of town ${n}.`));
    const { gateway } = await newGateway(many);
    await newGateway([tool('hidden', 'Is in a gateway without search.')], false);
    const first = fakeModel('restart');
    const cut = searchWith(first.open);
    await cut.vectors.start();
    await expect.poll(() => first.asked.length, { timeout: 60_000 }).toBeGreaterThan(0);
    const release = first.hold();
    const stopped = cut.vectors.stop();
    release();
    await stopped;
    const [{ count: kept } = { count: 0 }] = await database().query<{ count: number }>(
      "SELECT count(*)::int AS count FROM gateway_tool_vectors WHERE model = 'restart'",
    );
    expect(kept).toBeGreaterThan(0);
    const second = fakeModel('restart');
    const again = searchWith(second.open);
    await again.vectors.start();
    await whole(again.vectors, gateway);
    const all = await database().query("SELECT FROM gateway_tool_vectors WHERE model = 'restart'");
    expect(second.asked).toHaveLength(all.length - kept);
    expect([...first.asked, ...second.asked].join()).not.toContain('without search');
    await again.vectors.stop();
  });

  it('makes vectors anew for another model, and of tools that were stored before there were any', async () => {
    const { gateway, open } = await newGateway(TOOLS);
    await database().exec('UPDATE gateway_tools SET digest = NULL');
    for (const name of ['one', 'two']) {
      const model = fakeModel(name);
      const { vectors, find } = searchWith(model.open);
      await vectors.start();
      await whole(vectors, gateway);
      expect((await find(await open(), 'forecast')).names[0]).toBe('t___getWeather');
      expect(model.asked).toContainEqual(expect.stringContaining('Tells the weather.'));
      await vectors.stop();
    }
  });

  it('is not held up by a text that the model refuses', async () => {
    const { gateway, open } = await newGateway([tool('a', 'Is unspeakable.'), ...TOOLS]);
    const model = fakeModel('picky');
    const { vectors, find } = searchWith(model.open);
    await vectors.start();
    await whole(vectors, gateway);
    expect((await find(await open(), 'forecast')).names[0]).toBe('t___getWeather');
    expect((await find(await open(), 'unspeakable')).shortcoming).toContain('does not answer');
    await vectors.stop();
  });
});
