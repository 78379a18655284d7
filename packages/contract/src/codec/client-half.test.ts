import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { generatedCases, settled } from '../../../../tests/support/generated-cases.ts';
import { encodeError, errors, matchRoute, type OperationName, operations, ServiceError } from '../index.ts';
import { contractModel } from '../model.ts';
import { bodyRule, decodeRequest, decodeResponse, encodeRequest, encodeResponse } from './codec.ts';

type Members = Record<string, unknown>;

const names = Object.keys(operations) as OperationName[];
const cases = generatedCases(contractModel().planes);
const seed = 20261124;

/** What the server makes of what the client's half sends. */
function received(name: OperationName, input: Members): Members {
  const { method, url, headers, body } = encodeRequest(name, input as never);
  const [path = '', query = ''] = url.split('?');
  const route = matchRoute(method, path);
  assert.equal(route?.operation, name);
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const sent = bodyRule(name).streams && bytes instanceof Uint8Array ? Readable.from([bytes]) : bytes;
  return decodeRequest(name, { labels: route.labels, query, headers, body: sent }) as unknown as Members;
}

describe('the client’s half of the codec', () => {
  it.each(names)('%s: the server reads what it sends, and it reads what the server answers', async (name) => {
    await fc.assert(
      fc.asyncProperty(cases.input(name), cases.output(name), async (input, output) => {
        assert.deepStrictEqual(await settled(received(name, input)), await settled(input));
        const answer = encodeResponse(name, cases.streamed(name, output) as never);
        const read = (await decodeResponse(name, answer)) as unknown as Members;
        assert.deepStrictEqual(
          await settled(read),
          await settled({ ...cases.streamed(name, output), ...cases.status(name) }),
        );
      }),
      { seed, numRuns: 8 },
    );
  });

  it('throws what the server sent, with the names of services’ own errors', async () => {
    const answered = (error: ServiceError) =>
      decodeResponse('GetMemory', encodeError(error)).catch((thrown: unknown) => thrown);
    const busy = errors.conflict('Busy.', { members: { reason: 'ResourceConflict' }, retryAfterSeconds: 3 });
    expect(await answered(busy)).toMatchObject({
      ...{ code: 'ConflictException', status: 409, message: 'Busy.', retryAfterSeconds: 3 },
      members: { reason: 'ResourceConflict' },
    });
    const broken = new ServiceError({ code: 'ToyBrokenException', status: 418 }, 'It fell down.');
    expect(await answered(broken)).toMatchObject({ code: 'ToyBrokenException', status: 418, message: 'It fell down.' });
    const nameless = { status: 502, headers: {}, body: '<html>' };
    await expect(decodeResponse('GetMemory', nameless)).rejects.toMatchObject({ code: 'InternalServerException' });
  });

  it('refuses what it cannot read, and more than it holds', async () => {
    const of = (body: string | AsyncIterable<Uint8Array>) =>
      decodeResponse('GetMemory', { status: 200, headers: {}, body });
    await expect(of('{')).rejects.toThrow('The body of the answer is not JSON');
    async function* endless() {
      for (;;) yield Buffer.alloc(2 ** 20);
    }
    await expect(of(endless())).rejects.toThrow('more than 16777216 bytes');
  });
});
