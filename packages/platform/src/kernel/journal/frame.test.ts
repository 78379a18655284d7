import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RecordTooLargeError } from './errors.ts';
import { decodeFrame, encodeFrame, MAX_BODY_BYTES } from './frame.ts';

const frames = fc.record({
  seq: fc.maxSafeNat(),
  sink: fc.string({ maxLength: 60, unit: 'binary' }).filter((name) => name.isWellFormed()),
  json: fc.jsonValue().map((value) => JSON.stringify(value)),
});

test('every frame comes back, wherever it starts', () => {
  fc.assert(
    fc.property(frames, fc.nat({ max: 20 }), (frame, start) => {
      const encoded = encodeFrame(frame);
      const decoded = decodeFrame(Buffer.concat([Buffer.alloc(start, 7), encoded, Buffer.from('next')]), start);
      expect(decoded).toEqual({ kind: 'frame', frame, end: start + encoded.length });
    }),
  );
});

test('a cut frame asks for the bytes it lacks', () => {
  fc.assert(
    fc.property(frames, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (frame, part) => {
      const encoded = encodeFrame(frame);
      const cut = Math.floor(encoded.length * part);
      expect(decodeFrame(encoded.subarray(0, cut), 0)).toEqual({ kind: 'short', bytes: cut < 8 ? 8 : encoded.length });
    }),
  );
});

test('one altered bit is noticed, wherever it is', () => {
  fc.assert(
    fc.property(frames, fc.nat(), (frame, at) => {
      const encoded = encodeFrame(frame);
      const bit = at % (encoded.length * 8);
      encoded[bit >> 3] = (encoded[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(decodeFrame(encoded, 0).kind).not.toBe('frame');
    }),
    { numRuns: 500 },
  );
});

test('no bytes make it throw or read on for ever', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const decoded = decodeFrame(Buffer.from(bytes), 0);
      return decoded.kind !== 'short' || decoded.bytes <= MAX_BODY_BYTES + 8;
    }),
  );
});

test('zeros, which a crash leaves in a grown file, are no frame', () => {
  expect(decodeFrame(Buffer.alloc(64), 0).kind).toBe('broken');
});

test('a record over the limit is refused when it is made', () => {
  expect(() => encodeFrame({ seq: 1, sink: 's', json: 'x'.repeat(MAX_BODY_BYTES) })).toThrow(RecordTooLargeError);
});
