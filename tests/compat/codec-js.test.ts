import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type DocumentValue,
  errorCatalogue,
  isErrorCode,
  type OperationName,
  operations,
  ServiceError,
} from '../../packages/contract/src/index.ts';
import { contractModel, type Plane, shapeIn } from '../../packages/contract/src/model.ts';
import { shapeArbitraries } from '../../packages/contract/test/arbitraries.ts';
import { comparable } from '../../packages/contract/test/comparable.ts';
import { type Answer, loopback } from '../support/contract-loop.ts';
import { anySdk, sdkErrorClass, sdkOperations } from '../support/sdk-clients.ts';
import { differences, modelOfSdk, sdkGaps } from '../support/sdk-gaps.ts';

/** Cases per operation, each of them an input and an output. */
const runs = 16;
const seed = 20261121;

const names = Object.keys(operations) as OperationName[];
const arbitraries = { data: shapeArbitraries(modelOfSdk('data')), control: shapeArbitraries(modelOfSdk('control')) };

/** What is compared of an input or output: streams as their bytes or events, the rest as it is. */
async function settled(value: Record<string, unknown>): Promise<unknown> {
  const { $metadata: _, ...members } = value;
  for (const [name, member] of Object.entries(members)) {
    if (typeof member !== 'object' || member === null || !(Symbol.asyncIterator in member)) continue;
    const items: unknown[] = [];
    for await (const item of member as AsyncIterable<unknown>) items.push(item);
    members[name] = items.every((item) => item instanceof Uint8Array) ? Buffer.concat(items) : items;
  }
  return comparable(members);
}

/** The events that a stream's union allows, as arbitrary. */
function eventArbitrary(plane: Plane, union: string): fc.Arbitrary<Record<string, unknown>> {
  const model = contractModel().planes[plane];
  const events = Object.entries(shapeIn(model, union).members ?? {}).filter(
    ([, m]) => !shapeIn(model, m.shape).exception,
  );
  return fc.oneof(...events.map(([name, m]) => arbitraries[plane](m.shape).map((value) => ({ [name]: value }))));
}

/** Outputs of an operation; where it streams, a plain list of what is streamed. */
function outputArbitrary(name: OperationName): fc.Arbitrary<Record<string, unknown>> {
  const { plane, output } = operations[name];
  const { payload, members = {} } = shapeIn(contractModel().planes[plane], output);
  const whole = arbitraries[plane](output) as fc.Arbitrary<Record<string, unknown>>;
  if (payload === undefined || operations[name].responds === 'json') return whole;
  const parts =
    operations[name].responds === 'events'
      ? fc.array(eventArbitrary(plane, members[payload]?.shape ?? ''), { minLength: 1, maxLength: 4 })
      : fc.array(fc.uint8Array({ minLength: 1, maxLength: 32 }), { minLength: 1, maxLength: 4 });
  return fc.tuple(whole, parts).map(([rest, streamed]) => ({ ...rest, [payload]: streamed }));
}

/** The member of an output that carries the HTTP status, which the SDK fills in. */
function statusOf(name: OperationName): Record<string, number> {
  const { plane, output, status } = operations[name];
  const { members = {} } = shapeIn(contractModel().planes[plane], output);
  return Object.fromEntries(
    Object.entries(members).flatMap(([m, { location }]) => (location === 'statusCode' ? [[m, status]] : [])),
  );
}

/** An output as a handler returns it: what streams is an async iterable. */
function streamed(name: OperationName, output: Record<string, unknown>): Record<string, unknown> {
  const { plane, output: shape, responds } = operations[name];
  const { payload } = shapeIn(contractModel().planes[plane], shape);
  if (payload === undefined || responds === 'json') return output;
  return { ...output, [payload]: Readable.from(output[payload] as unknown[]) };
}

describe('codec against the AWS SDK for JavaScript', () => {
  it('has exactly the operations of the SDK', () => {
    for (const plane of ['data', 'control'] satisfies Plane[]) {
      const ours = names.filter((name) => operations[name].plane === plane);
      expect(sdkOperations(plane).sort()).toEqual(ours.sort());
    }
    expect(names).toHaveLength(238);
  });

  it('has exactly the members of the SDK, but for a list of those that the SDK lacks', () => {
    const found = [differences('data'), differences('control')];
    expect(found.flatMap((d) => d.missing).sort()).toEqual([...sdkGaps]);
    expect(found.flatMap((d) => d.extra)).toEqual([]);
  });

  it.each(names)('%s: what the SDK sends is decoded, what is encoded the SDK reads', async (name) => {
    let received: unknown;
    let toSend: Record<string, unknown> = {};
    const answer: Answer = async (operation, input) => {
      assert.equal(operation, name);
      received = await settled(input as unknown as Record<string, unknown>);
      return streamed(name, toSend) as never;
    };
    const sdk = anySdk({ endpoint: 'http://loopback.invalid', handle: loopback(answer) });
    const inputs = arbitraries[operations[name].plane](operations[name].input) as fc.Arbitrary<Record<string, unknown>>;
    await fc.assert(
      fc.asyncProperty(inputs, outputArbitrary(name), async (input, output) => {
        toSend = output;
        const answered = await settled(await sdk.call(name, input));
        assert.deepStrictEqual(received, comparable(input));
        assert.deepStrictEqual(answered, await settled({ ...streamed(name, output), ...statusOf(name) }));
      }),
      { seed, numRuns: runs },
    );
    sdk.destroy();
  });

  const modelled = names.flatMap((name) => operations[name].errors.map((code) => [name, code] as const));

  it(`makes the SDK throw its own class for each of the ${modelled.length} errors of the operations`, async () => {
    let toThrow: unknown;
    const sdk = anySdk({
      endpoint: 'http://loopback.invalid',
      handle: loopback(async () => {
        throw toThrow;
      }),
    });
    for (const [name, code] of modelled) {
      const { plane, input } = operations[name];
      const errorShape = shapeIn(contractModel().planes[plane], code);
      assert.ok(isErrorCode(code), `${code} is not in the catalogue`);
      expect(errorCatalogue[code].status).toBe(errorShape.error?.httpStatusCode);
      const [members] = fc.sample(arbitraries[plane](code), { numRuns: 1, seed });
      const { message: _, ...rest } = members as Record<string, DocumentValue>;
      toThrow = new ServiceError(code, `No ${name} today.`, { members: rest, remedy: 'Try tomorrow.' });
      const [valid] = fc.sample(arbitraries[plane](input), { numRuns: 1, seed });
      const thrown = await sdk.call(name, valid).then(
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

  it.each(names.filter((name) => operations[name].responds === 'events'))(
    '%s: errors in the midst of the stream reach the SDK',
    async (name) => {
      const { plane, output, input } = operations[name];
      const model = contractModel().planes[plane];
      const { payload = '', members = {} } = shapeIn(model, output);
      const union = members[payload]?.shape ?? '';
      const exceptions = Object.values(shapeIn(model, union).members ?? {}).filter(
        (m) => shapeIn(model, m.shape).exception,
      );
      const [event] = fc.sample(eventArbitrary(plane, union), { numRuns: 1, seed });
      const [whole] = fc.sample(arbitraries[plane](output), { numRuns: 1, seed });
      const [valid] = fc.sample(arbitraries[plane](input), { numRuns: 1, seed });

      async function receive(failure: unknown): Promise<{ events: unknown[]; thrown: unknown }> {
        async function* stream(): AsyncIterable<unknown> {
          yield event;
          throw failure;
        }
        const answer: Answer = async () => ({ ...(whole as object), [payload]: stream() }) as never;
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
