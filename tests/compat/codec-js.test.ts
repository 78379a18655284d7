import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type DocumentValue,
  errorCatalogue,
  isErrorCode,
  matchRoute,
  type OperationName,
  operations,
  ServiceError,
} from '../../packages/contract/src/index.ts';
import { contractModel, type Plane, shapeIn } from '../../packages/contract/src/model.ts';
import { comparable } from '../../packages/contract/test/comparable.ts';
import { type Answer, loopback } from '../support/contract-loop.ts';
import { generatedCases, settled } from '../support/generated-cases.ts';
import { anySdk, sdkErrorClass, sdkOperations } from '../support/sdk-clients.ts';
import { differences, modelOfSdk, sdkGaps, sdkLacks, sdkSendsElsewhere } from '../support/sdk-gaps.ts';

/** Cases per operation, each of them an input and an output. */
const runs = 16;
const seed = 20261121;

const names = Object.keys(operations) as OperationName[];
/** What both the SDK and the model have in the same place. */
const common = names.filter((name) => !sdkLacks.includes(name) && !sdkSendsElsewhere.includes(name));
const cases = generatedCases({
  data: modelOfSdk('data'),
  control: modelOfSdk('control'),
  models: modelOfSdk('models'),
});
const one = <T>(arbitrary: fc.Arbitrary<T>): T => fc.sample(arbitrary, { numRuns: 1, seed })[0] as T;

describe('codec against the AWS SDK for JavaScript', () => {
  it('has exactly the operations of the SDK, but for a list of those that the SDK lacks', () => {
    // Of Bedrock Runtime a few are served.
    for (const plane of ['data', 'control'] satisfies Plane[]) {
      const ours = names.filter((name) => operations[name].plane === plane && !sdkLacks.includes(name));
      expect(sdkOperations(plane).sort()).toEqual(ours.sort());
    }
    expect(names.filter((name) => operations[name].plane !== 'models')).toHaveLength(250);
    expect(sdkOperations('models')).toEqual(
      expect.arrayContaining(names.filter((name) => operations[name].plane === 'models')),
    );
  });

  it('has exactly the members of the SDK, but for a list of those that the SDK lacks', () => {
    const found = [differences('data'), differences('control'), differences('models')];
    expect([...new Set(found.flatMap((d) => d.missing))].sort()).toEqual([...sdkGaps]);
    expect(found.flatMap((d) => d.extra)).toEqual([]);
  });

  it('sends the operations to the routes of the model, but for a list of those that moved', async () => {
    const elsewhere: OperationName[] = [];
    for (const name of names.filter((one) => !sdkLacks.includes(one))) {
      const sdk = anySdk({
        endpoint: 'http://loopback.invalid',
        handle: async ({ method, path }) => {
          if (matchRoute(method, path)?.operation !== name) elsewhere.push(name);
          return { statusCode: 500, headers: {}, body: Readable.from([]) };
        },
      });
      await sdk.call(name, one(cases.input(name))).catch(() => undefined);
      sdk.destroy();
    }
    expect(elsewhere.sort()).toEqual([...sdkSendsElsewhere]);
  });

  it.each(common)('%s: what the SDK sends is decoded, what is encoded the SDK reads', async (name) => {
    let received: unknown;
    let toSend: Record<string, unknown> = {};
    const answer: Answer = async (operation, input) => {
      assert.equal(operation, name);
      received = await settled(input as unknown as Record<string, unknown>);
      return cases.streamed(name, toSend) as never;
    };
    const sdk = anySdk({ endpoint: 'http://loopback.invalid', handle: loopback(answer) });
    await fc.assert(
      fc.asyncProperty(cases.input(name), cases.output(name), async (input, output) => {
        toSend = output;
        const answered = await settled(await sdk.call(name, input));
        assert.deepStrictEqual(received, comparable(input));
        assert.deepStrictEqual(answered, await settled({ ...cases.streamed(name, output), ...cases.status(name) }));
      }),
      { seed, numRuns: runs },
    );
    sdk.destroy();
  });

  const modelled = common.flatMap((name) =>
    operations[name].errors
      // AgentCore's own status is 402 (error-catalogue.test.ts).
      .filter((code) => operations[name].plane !== 'models' || code !== 'ServiceQuotaExceededException')
      .map((code) => [name, code] as const),
  );

  it(`makes the SDK throw its own class for each of the ${modelled.length} errors of the operations`, async () => {
    let toThrow: unknown;
    const sdk = anySdk({
      endpoint: 'http://loopback.invalid',
      handle: loopback(async () => {
        throw toThrow;
      }),
    });
    for (const [name, code] of modelled) {
      const { plane } = operations[name];
      const errorShape = shapeIn(contractModel().planes[plane], code);
      assert.ok(isErrorCode(code), `${code} is not in the catalogue`);
      expect(errorCatalogue[code].status).toBe(errorShape.error?.httpStatusCode);
      const { message: _, ...rest } = one(cases.shape(plane, code)) as Record<string, DocumentValue>;
      toThrow = new ServiceError(code, `No ${name} today.`, { members: rest, remedy: 'Try tomorrow.' });
      const thrown = await sdk.call(name, one(cases.input(name))).then(
        () => undefined,
        (error: unknown) => error,
      );
      const expected = sdkErrorClass(plane, code);
      assert.ok(expected !== undefined && thrown instanceof expected, `${name} threw ${thrown} for ${code}`);
      expect(thrown).toMatchObject({ name: code, message: `No ${name} today. Try tomorrow.`, ...rest });
      expect(thrown).toHaveProperty('$metadata.httpStatusCode', errorCatalogue[code].status);
    }
    sdk.destroy();
  });

  it.each(common.filter((name) => operations[name].responds === 'events'))(
    '%s: errors in the midst of the stream reach the SDK',
    async (name) => {
      const { plane } = operations[name];
      const model = contractModel().planes[plane];
      const { payload, union } = cases.eventStream(name);
      const exceptions = Object.values(shapeIn(model, union).members ?? {}).filter(
        (m) => shapeIn(model, m.shape).exception,
      );
      const event = one(cases.event(plane, union));
      const whole = one(cases.output(name));
      const valid = one(cases.input(name));

      async function receive(failure: unknown): Promise<{ events: unknown[]; thrown: unknown }> {
        async function* stream(): AsyncIterable<unknown> {
          yield event;
          throw failure;
        }
        const answer: Answer = async () => ({ ...whole, [payload]: stream() }) as never;
        const sdk = anySdk({ endpoint: 'http://loopback.invalid', handle: loopback(answer) });
        const events: unknown[] = [];
        try {
          const { [payload]: received } = await sdk.call(name, valid);
          for await (const item of received as AsyncIterable<unknown>) events.push(item);
          return { events, thrown: undefined };
        } catch (thrown) {
          return { events, thrown };
        } finally {
          sdk.destroy();
        }
      }

      expect(exceptions.length).toBeGreaterThan(2);
      for (const { shape: code } of exceptions) {
        assert.ok(isErrorCode(code));
        const { events, thrown } = await receive(
          new ServiceError(code, 'Cut short.', { members: { reason: 'CannotParse' } }),
        );
        const expected = sdkErrorClass(plane, code);
        assert.deepStrictEqual(events.map(comparable), [comparable(event)]);
        assert.ok(expected !== undefined && thrown instanceof expected, `${thrown} for ${code}`);
        expect(thrown).toMatchObject({ name: code, message: 'Cut short.' });
      }
      const unmodelled = await receive(new ServiceError('ExpiredTokenException', 'The session ended.'));
      expect(unmodelled.thrown).toMatchObject({ name: 'ExpiredTokenException', message: 'The session ended.' });
      const bug = await receive(new Error('password=hunter2'));
      expect(bug.thrown).toMatchObject({ name: 'InternalServerException' });
      expect(String(bug.thrown)).not.toContain('hunter2');
    },
  );
});
