import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { closeFrame, controlFrame, FrameScanner, OPCODE } from './frames.ts';

const PING = Buffer.from('our ping');
const LIMIT = 70_000;
const scanner = (masked = false): FrameScanner => new FrameScanner({ masked, maxMessageBytes: LIMIT, ping: PING });

/** A frame as an endpoint makes it. */
function frame(opcode: number, payload: Buffer, { final = true, masked = false, reserved = 0 } = {}): Buffer {
  const size = payload.length;
  const length = size < 126 ? Buffer.from([size]) : Buffer.alloc(size < 65_536 ? 3 : 9);
  if (length.length === 3) length.writeUInt16BE(size, 1);
  if (length.length === 9) length.writeBigUInt64BE(BigInt(size), 1);
  if (length.length > 1) length[0] = length.length === 3 ? 126 : 127;
  length[0] = (length[0] ?? 0) | (masked ? 0x80 : 0);
  const mask = masked ? Buffer.from([1, 2, 3, 4]) : Buffer.alloc(0);
  const body = Buffer.from(payload);
  for (let i = 0; masked && i < size; i += 1) body[i] = (body[i] ?? 0) ^ (mask[i % 4] ?? 0);
  return Buffer.concat([Buffer.from([(final ? 0x80 : 0) | (reserved << 4) | opcode]), length, mask, body]);
}

/** What comes of bytes that arrive in pieces of those sizes. */
function scan(into: FrameScanner, bytes: Buffer, sizes: number[] = []) {
  const passed: Buffer[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const end = Math.min(bytes.length, at + (sizes[turn % Math.max(1, sizes.length)] ?? bytes.length));
    const { pieces, close, fault } = into.take(bytes.subarray(at, end));
    passed.push(...pieces);
    if (close || fault) return { passed: Buffer.concat(passed), close, fault };
    at = end;
  }
  return { passed: Buffer.concat(passed), close: undefined, fault: undefined };
}

const sizes = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 6 });
const payload = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom(125, 126, 65_535, 65_536, LIMIT).map((size) => Buffer.alloc(size, 'x')),
);
const small = fc.uint8Array({ maxLength: 125 }).map((bytes) => Buffer.from(bytes));

describe('frames that are passed on', () => {
  it('are the same bytes, however they arrive; only the answers to our own pings are kept back', () => {
    const message = fc.tuple(payload, fc.boolean()).map(([data, text]) => ({ opcode: text ? 1 : 2, data, own: false }));
    const control = fc.tuple(fc.constantFrom(9, 10), small).map(([opcode, data]) => ({ opcode, data, own: false }));
    const own = fc.constant({ opcode: 10, data: PING, own: true });
    fc.assert(
      fc.property(
        fc.array(fc.oneof(message, control, own), { maxLength: 6 }),
        sizes,
        fc.boolean(),
        (all, parts, masked) => {
          const bytes = (kept: boolean) =>
            Buffer.concat(
              all.filter((one) => !kept || !one.own).map(({ opcode, data }) => frame(opcode, data, { masked })),
            );
          const into = scanner(masked);
          const { passed, close, fault } = scan(into, bytes(false), parts);
          expect({ close, fault }).toEqual({ close: undefined, fault: undefined });
          expect(passed.equals(bytes(true))).toBe(true);
          expect(into.betweenFrames).toBe(true);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('may be parts of a message, with pings between them; the parts together are bounded', () => {
    const part = (opcode: number, size: number, final: boolean): Buffer => frame(opcode, Buffer.alloc(size), { final });
    const good = Buffer.concat([
      part(OPCODE.text, LIMIT - 1, false),
      frame(OPCODE.ping, Buffer.from('p')),
      part(OPCODE.continuation, 0, false),
      part(OPCODE.continuation, 1, true),
      part(OPCODE.binary, LIMIT, true),
    ]);
    const taken = scan(scanner(), good, [7, 1000]);
    expect([taken.fault, taken.passed.equals(good)]).toEqual([undefined, true]);
    const large = Buffer.concat([part(OPCODE.text, LIMIT, false), part(OPCODE.continuation, 1, true)]);
    const refused = scan(scanner(), large, [999]);
    expect(refused.fault).toMatchObject({ code: 1009 });
    expect(refused.passed.equals(part(OPCODE.text, LIMIT, false))).toBe(true);
    const huge = Buffer.from([0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255]);
    expect(scan(scanner(), huge)).toMatchObject({ passed: Buffer.alloc(0), fault: { code: 1009 } });
  });

  it('end with a goodbye, which is passed on whole and after which nothing is', () => {
    for (const masked of [false, true]) {
      const goodbye = closeFrame(4002, 'bye', masked);
      const bytes = Buffer.concat([
        frame(1, Buffer.from('x'), { masked }),
        goodbye,
        frame(1, Buffer.from('y'), { masked }),
      ]);
      const into = scanner(masked);
      expect(scan(into, bytes, [1])).toEqual({
        passed: Buffer.concat([frame(1, Buffer.from('x'), { masked }), goodbye]),
        close: { code: 4002, reason: 'bye' },
        fault: undefined,
      });
      expect(into.take(bytes).pieces).toEqual([]);
      expect(scan(scanner(masked), closeFrame(undefined, '', masked)).close).toEqual({ code: undefined, reason: '' });
    }
  });

  it.each([
    ['masked where it must not be', frame(1, Buffer.alloc(3), { masked: true })],
    ['of a kind that does not exist', frame(3, Buffer.alloc(3))],
    ['with bits of an extension', frame(1, Buffer.alloc(3), { reserved: 4 })],
    ['that goes on with nothing', frame(0, Buffer.alloc(3))],
    ['a control frame in parts', frame(9, Buffer.alloc(3), { final: false })],
    ['a control frame that is too long', frame(9, Buffer.alloc(126))],
    ['a goodbye with half a code', frame(8, Buffer.alloc(1))],
    ['a goodbye with a code that only stands for something', frame(8, Buffer.from([0x03, 0xee]))],
  ])('%s is refused, and what came before it passed on', (_what, wrong) => {
    const before = frame(2, Buffer.alloc(10));
    expect(scan(scanner(), Buffer.concat([before, wrong]), [3])).toMatchObject({
      passed: before,
      fault: { code: 1002 },
    });
  });

  it('unmasked from a client are refused', () => {
    expect(scan(scanner(true), frame(1, Buffer.alloc(3)))).toMatchObject({ fault: { code: 1002 } });
    expect(scan(scanner(true), controlFrame(OPCODE.ping, PING, true)).fault).toBeUndefined();
  });

  it('of any bytes: what is passed on is how they begin, and little is held', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), sizes, fc.boolean(), (bytes, parts, masked) => {
        const all = Buffer.from(bytes);
        const { passed, close, fault } = scan(scanner(masked), all, parts);
        expect(all.subarray(0, passed.length).equals(passed)).toBe(true);
        if (!close && !fault) expect(all.length - passed.length).toBeLessThanOrEqual(125 + 14);
      }),
      { numRuns: 1000 },
    );
  });
});
