import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { errors, ServiceError } from '../errors.ts';
import type { StreamingBlob } from '../wire-types.ts';
import { decodeResponse, encodeResponse } from './codec.ts';

type Event = Parameters<typeof encodeResponse<'InvokeHarness'>>[1]['stream'] extends AsyncIterable<infer E> ? E : never;

const events: Event[] = [
  { messageStart: { role: 'assistant' } },
  { contentBlockDelta: { contentBlockIndex: 0, delta: { text: 'grüße 😀' } } },
  { messageStop: { stopReason: 'end_turn' } },
];

async function* source(items: readonly Event[], failure?: unknown): AsyncIterable<Event> {
  yield* items;
  if (failure !== undefined) throw failure;
}

async function bytesOf(stream: AsyncIterable<Event>, onFailure?: (error: unknown) => void): Promise<Buffer> {
  const { body } = encodeResponse('InvokeHarness', { stream }, onFailure);
  const parts: Uint8Array[] = [];
  for await (const part of body as StreamingBlob) parts.push(part);
  return Buffer.concat(parts);
}

async function* inPieces(bytes: Uint8Array, sizes: readonly number[]): StreamingBlob {
  let at = 0;
  for (let i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function received(bytes: StreamingBlob): Promise<{ events: unknown[]; thrown: unknown }> {
  const got: unknown[] = [];
  try {
    const { stream } = await decodeResponse('InvokeHarness', { status: 200, headers: {}, body: bytes });
    for await (const event of stream) got.push(event);
    return { events: got, thrown: undefined };
  } catch (thrown) {
    return { events: got, thrown };
  }
}

describe('event streams', () => {
  it('are read however the bytes are cut', async () => {
    const bytes = await bytesOf(source(events));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 9 }), async (sizes) => {
        expect(await received(inPieces(bytes, sizes))).toEqual({ events, thrown: undefined });
      }),
      { numRuns: 100, seed: 1 },
    );
  });

  it('end with the error that was thrown, which the server hears of', async () => {
    const heard: unknown[] = [];
    const failure = errors.validation('No such tool.', { fieldList: [{ name: 'tools[0]', message: 'is not known' }] });
    const bytes = await bytesOf(source(events.slice(0, 1), failure), (error) => heard.push(error));
    const { events: got, thrown } = await received(inPieces(bytes, [64]));
    expect(got).toEqual(events.slice(0, 1));
    expect(thrown).toBeInstanceOf(ServiceError);
    expect(thrown).toMatchObject({ code: 'ValidationException', message: 'No such tool.', members: failure.members });
    expect(heard).toEqual([failure]);
  });

  it('stop their source when the reader leaves', async () => {
    let stopped = false;
    async function* endless(): AsyncIterable<Event> {
      try {
        for (;;) yield { contentBlockStop: { contentBlockIndex: 1 } };
      } finally {
        stopped = true;
      }
    }
    const { body } = encodeResponse('InvokeHarness', { stream: endless() });
    for await (const _ of body as StreamingBlob) break;
    expect(stopped).toBe(true);
  });

  it('are refused when cut off, altered or absurd in length', async () => {
    const bytes = await bytesOf(source(events));
    expect((await received(inPieces(bytes, [1000]))).thrown).toBeUndefined();
    expect((await received(inPieces(bytes.subarray(0, -1), [1000]))).thrown).toBeInstanceOf(Error);
    expect((await received(inPieces(Buffer.from('ffffffff', 'hex'), [4]))).thrown).toMatchObject({
      message: expect.stringContaining('cannot have 4294967295 bytes'),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: bytes.length - 1 }),
        fc.integer({ min: 1, max: 255 }),
        async (at, flip) => {
          const altered = Buffer.from(bytes);
          altered.writeUInt8(altered.readUInt8(at) ^ flip, at);
          expect((await received(inPieces(altered, [1000]))).thrown).toBeInstanceOf(Error);
        },
      ),
      { numRuns: 200, seed: 1 },
    );
  });

  it('refuse an event that the operation does not have', async () => {
    const heard: unknown[] = [];
    const bytes = await bytesOf(source([{ nonsense: 1 } as unknown as Event]), (error) => heard.push(error));
    expect(heard[0]).toBeInstanceOf(TypeError);
    expect((await received(inPieces(bytes, [64]))).thrown).toMatchObject({ code: 'InternalServerException' });
  });
});
