import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { FakeClock } from '../../kernel/fake-clock.ts';
import { describeDatabases } from '../../kernel/storage/testing/databases.ts';
import { redactText } from '../../kernel/telemetry/index.ts';
import { BrokenMessageError, spansInJson, spansInProtobuf } from './otlp/index.ts';
import { contentRules } from './settings.ts';
import { SpanIntake } from './span-intake.ts';
import { meaningOf } from './span-names.ts';
import { compareTraces, listSessions, listTurns, readMetrics, readTrace, tail } from './span-queries.ts';
import type { SpanRow } from './span-row.ts';
import { spanRetention, spanSink } from './span-sink.ts';
import { treeOf } from './span-tree.ts';
import { observabilityMigrations } from './tables.ts';
import { attribute, message, request, span } from './testing/protobuf.ts';

const ACCOUNT = '123456789012';
const AGENT = `arn:aws:bedrock-agentcore:us-east-1:${ACCOUNT}:runtime/support-a1B2c3D4e5`;
const sender = { accountId: ACCOUNT, agent: AGENT, sessionId: 'session-1' };
const id = (n: number, digits: number): string => n.toString(16).padStart(digits, '0');

const clock = new FakeClock();

/** An intake whose journal keeps batches in memory. */
function intakeOf(more: Partial<ConstructorParameters<typeof SpanIntake>[0]> = {}) {
  const batches: { rows: SpanRow[] }[] = [];
  const journal = {
    append: async (_sink: string, record: unknown) => void batches.push(JSON.parse(JSON.stringify(record))),
  };
  const intake = new SpanIntake({
    ...{ journal, clock, spansPerSecond: 0, redact: redactText, content: contentRules('on') },
    ...more,
  });
  return { intake, batches, rows: () => batches.flatMap(({ rows }) => rows) };
}

describe('OTLP', () => {
  const attributes = [
    attribute('gen_ai.operation.name', 'chat'),
    attribute('gen_ai.usage.input_tokens', 12n),
    attribute('nested', message([6, message([1, attribute('deep', message([5, message([1, message([3, -7n])])]))])])),
    attribute('flag', message([2, 1n])),
    attribute('half', message([4, { fixed: 0x3fe0000000000000n }])),
  ];
  const one = span({
    traceId: 'ab'.repeat(16),
    spanId: 'cd'.repeat(8),
    parent: 'ef'.repeat(8),
    name: 'chat m',
    attributes,
  });

  it('is read in protobuf and in JSON to the same', () => {
    const [fromProtobuf] = [...spansInProtobuf(request([one]))];
    const json = JSON.stringify({
      resourceSpans: [
        {
          resource: { attributes: [{ key: 'service.name', value: { stringValue: 'agent' } }] },
          scopeSpans: [
            {
              scope: { name: 'test' },
              spans: [
                {
                  ...{
                    traceId: 'AB'.repeat(16),
                    spanId: 'CD'.repeat(8),
                    parentSpanId: 'EF'.repeat(8),
                    name: 'chat m',
                    kind: 1,
                  },
                  ...{ startTimeUnixNano: '1764000000000000000', endTimeUnixNano: '1764000000005000000' },
                  attributes: [
                    { key: 'gen_ai.operation.name', value: { stringValue: 'chat' } },
                    { key: 'gen_ai.usage.input_tokens', value: { intValue: '12' } },
                    {
                      key: 'nested',
                      value: {
                        kvlistValue: {
                          values: [{ key: 'deep', value: { arrayValue: { values: [{ intValue: '-7' }] } } }],
                        },
                      },
                    },
                    { key: 'flag', value: { boolValue: true } },
                    { key: 'half', value: { doubleValue: 0.5 } },
                  ],
                },
              ],
            },
          ],
        },
      ],
    });
    expect([...spansInJson(json)]).toEqual([fromProtobuf]);
    expect(fromProtobuf).toMatchObject({
      traceId: 'ab'.repeat(16),
      attributes: { nested: { deep: [-7] }, half: 0.5 },
      scope: 'test',
    });
  });

  it('malformed: is refused as broken, whatever the bytes are, and never read past its end', () => {
    const whole = request([one]);
    for (let cut = 1; cut < whole.length; cut += 1) {
      try {
        for (const found of spansInProtobuf(whole.subarray(0, cut))) expect(found).toHaveProperty('attributes');
      } catch (error) {
        expect(error).toBeInstanceOf(BrokenMessageError);
      }
    }
    const read = (bytes: Uint8Array): void => {
      try {
        for (const found of spansInProtobuf(Buffer.from(bytes))) expect(typeof found.name).toBe('string');
      } catch (error) {
        expect(error).toBeInstanceOf(BrokenMessageError);
      }
    };
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), read), { seed: 21, numRuns: 500 });
    for (const wrong of [
      '',
      '[',
      '7',
      '{"resourceSpans":7}',
      '{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":7}]}]}]}',
    ])
      try {
        expect([...spansInJson(wrong)]).toEqual([]);
      } catch (error) {
        expect(error).toBeInstanceOf(BrokenMessageError);
      }
  });

  it('10,000 attributes: keeps 256 of them, and says how many it left out', async () => {
    const many = Array.from({ length: 10_000 }, (_, n) => attribute(`a${n}`, 'x'));
    const { intake, rows } = intakeOf();
    expect(await intake.take(spansInProtobuf(request([span({ attributes: many })])), sender)).toMatchObject({
      accepted: 1,
    });
    const detail = JSON.parse(rows()[0]?.detail ?? '');
    expect(Object.keys(detail.attributes)).toHaveLength(256);
    expect(detail.droppedAttributes).toBe(9_744);
  });

  it('an attribute named __proto__ changes nothing', () => {
    const [read] = [
      ...spansInProtobuf(request([span({ attributes: [attribute('__proto__', 'x'), attribute('a', 'b')] })])),
    ];
    expect(read?.attributes).toEqual({ a: 'b' });
    expect(Object.getPrototypeOf({})).not.toHaveProperty('a');
  });
});

describe('what is taken in', () => {
  it('a day of clock skew: keeps the times that were told, on the day on which they came; impossible ones count as now', async () => {
    const { intake, rows } = intakeOf();
    const day = 86_400_000_000_000n;
    const now = BigInt(clock.now()) * 1_000_000n;
    const skewed = [now - day, now + day, 0n, 2n ** 63n].map((start, n) =>
      span({ spanId: id(n + 1, 16), start, end: start + 1_000n }),
    );
    const backwards = span({ spanId: id(9, 16), start: now, end: now - day });
    await intake.take(spansInProtobuf(request([...skewed, backwards])), sender);
    const [early, late, zero, far, back] = rows();
    const micros = clock.now() * 1000;
    expect([early, late].map((row) => (row?.startedUs ?? 0) - micros)).toEqual([-86_400_000_000, 86_400_000_000]);
    expect([zero?.startedUs, far?.startedUs]).toEqual([micros, micros]);
    expect(back?.durationUs).toBe(0);
    expect(new Set(rows().map(({ day: on }) => on)).size).toBe(1);
  });

  it('ids that are none are rejected one by one, and the others are stored', async () => {
    const { intake, rows } = intakeOf();
    const given = [span({ traceId: '00'.repeat(16) }), span({ spanId: 'abcd' }), span({})];
    expect(await intake.take(spansInProtobuf(request(given)), sender)).toEqual({
      accepted: 1,
      rejected: 2,
      why: 'a spanId is not 8 bytes',
    });
    expect(rows()).toHaveLength(1);
  });

  it('a flood from one agent: the rest of its spans is rejected and counted, others keep coming', async () => {
    const { intake, rows } = intakeOf({ spansPerSecond: 10 });
    const many = Array.from({ length: 50 }, (_, n) => span({ spanId: id(n + 1, 16) }));
    expect(await intake.take(spansInProtobuf(request(many)), sender)).toMatchObject({ accepted: 10, rejected: 40 });
    const other = { ...sender, agent: `${AGENT}x` };
    expect(await intake.take(spansInProtobuf(request(many.slice(0, 5))), other)).toMatchObject({
      accepted: 5,
      rejected: 0,
    });
    expect(intake.counts.shed).toBe(40);
    expect(rows()).toHaveLength(15);
    await clock.advance(1000);
    expect(await intake.take(spansInProtobuf(request(many.slice(0, 5))), sender)).toMatchObject({ accepted: 5 });
  });

  it('disk full: is answered as unavailable, so that the exporter sends it again', async () => {
    const append = () => Promise.reject(new Error('ENOSPC'));
    const { intake } = intakeOf({ journal: { append } });
    await expect(intake.take(spansInProtobuf(request([span({})])), sender)).rejects.toMatchObject({ status: 503 });
  });

  it('a large batch goes to the journal in records that fit', async () => {
    const { intake, batches } = intakeOf();
    const large = Array.from({ length: 60 }, (_, n) =>
      span({ spanId: id(n + 1, 16), attributes: [attribute('big', 'x'.repeat(16_000))] }),
    );
    await intake.take(spansInProtobuf(request(large)), sender);
    expect(batches.length).toBeGreaterThan(3);
    for (const batch of batches) expect(JSON.stringify(batch).length).toBeLessThan(1_000_000);
  });

  it('content is kept, blanked or left out, as its runtime wants it', async () => {
    const secret = 'Bearer abcdefghijklmnop';
    const attributes = [attribute('gen_ai.input.messages', `say ${secret}`), attribute('gen_ai.request.model', 'm')];
    const stored = async (content: string) => {
      const { intake, rows } = intakeOf({ content: contentRules(content) });
      await intake.take(spansInProtobuf(request([span({ attributes })])), sender);
      const [row] = rows();
      return { ...JSON.parse(row?.detail ?? ''), model: row?.model };
    };
    expect((await stored('on')).input).toBe(`say ${secret}`);
    expect((await stored('redacted')).input).toBe('say Bearer [redacted]');
    expect(await stored('off')).toMatchObject({ input: '', model: 'm' });
    expect(JSON.stringify(await stored('off'))).not.toContain('say');
    expect((await stored(`off,${AGENT}=on`)).input).toContain(secret);
    for (const wrong of ['', 'maybe', 'on,x=off', `on,${AGENT}`, 7]) expect(() => contentRules(wrong)).toThrow(/^must/);
  });
});

describe('spellings', () => {
  it.each([
    [
      'OpenTelemetry',
      {
        'gen_ai.operation.name': 'chat',
        'gen_ai.request.model': 'm',
        'gen_ai.usage.input_tokens': 3,
        'gen_ai.usage.output_tokens': 4,
        'session.id': 's',
      },
    ],
    [
      'OpenTelemetry before 1.27',
      {
        'gen_ai.operation.name': 'chat',
        'gen_ai.request.model': 'm',
        'gen_ai.usage.prompt_tokens': 3,
        'gen_ai.usage.completion_tokens': 4,
        'gen_ai.conversation.id': 's',
      },
    ],
    [
      'OpenInference',
      {
        'openinference.span.kind': 'LLM',
        'llm.model_name': 'm',
        'llm.token_count.prompt': 3,
        'llm.token_count.completion': '4',
        'session.id': 's',
      },
    ],
    [
      'OpenLLMetry',
      {
        'llm.request.type': 'chat',
        'gen_ai.request.model': 'm',
        'llm.usage.prompt_tokens': 3,
        'llm.usage.completion_tokens': 4,
        'traceloop.association.properties.session_id': 's',
      },
    ],
    [
      'AI SDK',
      {
        'ai.operationId': 'ai.generateText.doGenerate',
        'ai.model.id': 'm',
        'ai.usage.promptTokens': 3,
        'ai.usage.completionTokens': 4,
        'ai.telemetry.metadata.sessionId': 's',
      },
    ],
  ])('of %s mean the same', (_, attributes) => {
    expect(meaningOf(attributes)).toMatchObject({
      operation: 'chat',
      model: 'm',
      inputTokens: 3,
      outputTokens: 4,
      sessionId: 's',
    });
  });

  it('of tools and agents mean the same, and nonsense is nothing', () => {
    expect(meaningOf({ 'openinference.span.kind': 'TOOL', 'tool.name': 't', 'input.value': '{}' })).toMatchObject({
      operation: 'execute_tool',
      tool: 't',
      input: '{}',
    });
    expect(meaningOf({ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 't' })).toMatchObject({
      operation: 'execute_tool',
      tool: 't',
    });
    expect(meaningOf({ 'traceloop.span.kind': 'workflow' }).operation).toBe('invoke_agent');
    expect(meaningOf({ 'gen_ai.usage.input_tokens': 'many', 'gen_ai.usage.output_tokens': -3 })).toMatchObject({
      inputTokens: 0,
      outputTokens: 0,
    });
  });
});

describe('a tree', () => {
  const placed = (spanId: string, parentSpanId: string, startedUs = 0) => ({ spanId, parentSpanId, startedUs });
  const shape = (nodes: ReturnType<typeof treeOf>): unknown =>
    nodes.map(({ span: { spanId }, children, detached }) => [
      spanId,
      ...(detached ? ['detached'] : []),
      shape(children),
    ]);

  it('spans without parents: those whose parent is not there stand at the top', () => {
    expect(
      shape(treeOf([placed('b', 'a', 2), placed('a', '', 1), placed('d', 'lost', 3), placed('c', 'b', 4)])),
    ).toEqual([
      ['a', [['b', [['c', []]]]]],
      ['d', 'detached', []],
    ]);
  });

  it('cycles: each span is there once, however its parents go round', () => {
    const count = (nodes: ReturnType<typeof treeOf>): number =>
      nodes.reduce((sum, node) => sum + 1 + count(node.children), 0);
    expect(count(treeOf([placed('a', 'b', 1), placed('b', 'a', 2)]))).toBe(2);
    expect(count(treeOf([placed('a', 'a')]))).toBe(1);
    const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
    const any = fc.uniqueArray(
      fc.record({ spanId: fc.constantFrom(...ids), parentSpanId: fc.constantFrom('', ...ids), startedUs: fc.nat(9) }),
      { selector: ({ spanId }) => spanId },
    );
    fc.assert(
      fc.property(any, (spans) => {
        expect(count(treeOf(spans))).toBe(spans.length);
      }),
      { seed: 21, numRuns: 500 },
    );
  });
});

describeDatabases('stored spans', observabilityMigrations, (database) => {
  beforeEach(() => database().exec('TRUNCATE spans, traced_sessions'));

  const store = async (spans: readonly Buffer[], from = sender): Promise<void> => {
    const { intake, batches } = intakeOf();
    await intake.take(spansInProtobuf(request(spans)), from);
    const records = batches.map((data, seq) => ({ seq, data: spanSink.parse(data) }));
    await database().transaction((tx) => spanSink.apply(tx, records, { id: 'journal', directory: '/nowhere' }));
  };
  const chat = (n: number, more: Parameters<typeof span>[0] = {}) =>
    span({
      ...{ spanId: id(n, 16), name: `chat ${n}`, parent: id(1, 16) },
      attributes: [
        attribute('gen_ai.operation.name', 'chat'),
        attribute('gen_ai.usage.input_tokens', 10n),
        attribute('gen_ai.output.messages', `answer ${n} \u0000`),
      ],
      ...more,
    });
  const root = span({
    spanId: id(1, 16),
    name: 'invoke_agent',
    attributes: [attribute('gen_ai.operation.name', 'invoke_agent'), attribute('gen_ai.usage.input_tokens', 20n)],
  });

  it('are a trace, a turn and a line of their session; what is sent again counts once', async () => {
    await store([root, chat(2), chat(3)]);
    await store([root, chat(2), chat(3), chat(4)]);
    const trace = await readTrace(database(), ACCOUNT, 'a'.repeat(32));
    expect(trace).toMatchObject({ spans: 4, more: false });
    expect(trace.roots).toHaveLength(1);
    expect(trace.roots[0]?.children.map(({ span: { name, output } }) => [name, output])).toEqual(
      [2, 3, 4].map((n) => [`chat ${n}`, `answer ${n} \u0000`]),
    );
    const page = { after: undefined, limit: 10 };
    expect(await listSessions(database(), ACCOUNT, {}, page)).toMatchObject([
      // Calls of models count, the sum that the agent made of them does not.
      { sessionId: 'session-1', agent: AGENT, spans: 4, inputTokens: 30, errors: 0 },
    ]);
    expect(await listTurns(database(), ACCOUNT, 'session-1', 10)).toMatchObject([
      { traceId: 'a'.repeat(32), spans: 4, inputTokens: 30 },
    ]);
    await expect(readTrace(database(), '999999999999', 'a'.repeat(32))).rejects.toMatchObject({ status: 404 });
  });

  it('sessions are found by what they are, and page by page', async () => {
    for (let n = 1; n <= 5; n += 1) {
      const start = 1_764_000_000_000_000_000n + BigInt(n) * 1_000_000_000n;
      await store([chat(n, { traceId: id(n, 32), parent: '', start, end: start + BigInt(n) * 1_000_000n })], {
        ...sender,
        sessionId: `session-${n}`,
      });
    }
    const found = async (filter: Parameters<typeof listSessions>[2]) =>
      (await listSessions(database(), ACCOUNT, filter, { after: undefined, limit: 10 })).map(({ sessionId }) =>
        sessionId.slice(8),
      );
    expect(await found({})).toEqual(['5', '4', '3', '2', '1']);
    expect(await found({ agent: 'support-a1B2c3D4e5' })).toHaveLength(5);
    expect(await found({ agent: 'other' })).toEqual([]);
    expect(await found({ leastMs: 4 })).toEqual(['5', '4']);
    expect(await found({ leastTokens: 11 })).toEqual([]);
    expect(await found({ status: 'error' })).toEqual([]);
    expect(await found({ text: 'answer 3' })).toEqual(['3']);
    expect(await found({ text: '%' })).toEqual([]);
    expect(await found({ user: 'nobody' })).toEqual([]);
    expect(await found({ from: 1_764_000_004_000, to: 1_764_000_005_000 })).toEqual(['4']);
    const first = await listSessions(database(), ACCOUNT, {}, { after: undefined, limit: 2 });
    const last = first[1];
    const after = last && { lastUs: last.lastUs, sessionId: last.sessionId };
    expect(
      (await listSessions(database(), ACCOUNT, {}, { after, limit: 2 })).map(({ sessionId }) => sessionId),
    ).toEqual(['session-3', 'session-2']);
  });

  it('are compared, followed as they come, and summed up', async () => {
    await store([root, chat(2), chat(3)]);
    await store([
      span({
        traceId: 'c'.repeat(32),
        spanId: id(7, 16),
        name: 'invoke_agent',
        attributes: [attribute('gen_ai.operation.name', 'invoke_agent')],
      }),
    ]);
    const { lines } = await compareTraces(database(), ACCOUNT, ['a'.repeat(32), 'c'.repeat(32)]);
    expect(lines).toMatchObject([
      { name: 'chat 2', a: { count: 1 }, b: null },
      { name: 'chat 3', a: { count: 1 }, b: null },
      { operation: 'invoke_agent', a: { count: 1 }, b: { count: 1 } },
    ]);
    const all = await tail(database(), ACCOUNT, { receivedAt: 0, spanId: '' }, 10);
    expect(all.map(({ spanId }) => spanId)).toEqual([1, 2, 3, 7].map((n) => id(n, 16)));
    expect(
      await tail(database(), ACCOUNT, { receivedAt: all[3]?.receivedAt ?? 0, spanId: all[3]?.spanId ?? '' }, 10),
    ).toEqual([]);
    const metrics = await readMetrics(database(), ACCOUNT, new Date(clock.now() - 1000), 10);
    expect(metrics).toMatchObject([
      { operation: 'chat', count: 2, errors: 0, medianUs: 5000, inputTokens: 20 },
      { operation: 'invoke_agent', count: 2 },
    ]);
  });

  it('are forgotten a day at a time', async () => {
    await store([root]);
    const rule = spanRetention(database(), 86_400_000);
    const partitions = async () =>
      (await database().query("SELECT relname FROM pg_class WHERE relname ~ '^spans_\\d{8}$' AND relkind = 'r'"))
        .length;
    expect(await partitions()).toBe(1);
    expect(await rule.forget(clock.now(), 1000)).toBe(0);
    expect(await rule.forget(clock.now() + 3 * 86_400_000, 1000)).toBe(2);
    expect(await partitions()).toBe(0);
    expect(await listSessions(database(), ACCOUNT, {}, { after: undefined, limit: 10 })).toEqual([]);
  });
});
