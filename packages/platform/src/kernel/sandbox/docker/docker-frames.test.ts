import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FrameReader } from './docker-frames.ts';

const frame = fc.record({ stream: fc.constantFrom('stdout', 'stderr'), bytes: fc.uint8Array({ maxLength: 40 }) });

function encode({ stream, bytes }: { stream: string; bytes: Uint8Array }): Buffer {
  const header = Buffer.alloc(8);
  header[0] = stream === 'stderr' ? 2 : 1;
  header.writeUInt32BE(bytes.length, 4);
  return Buffer.concat([header, bytes]);
}

it('gives each stream its bytes, wherever the chunks are cut', () => {
  fc.assert(
    fc.property(fc.array(frame), fc.array(fc.integer({ min: 1, max: 17 }), { minLength: 1 }), (frames, cuts) => {
      const whole = Buffer.concat(frames.map(encode));
      const reader = new FrameReader();
      const seen = { stdout: '', stderr: '' };
      let ended = 0;
      for (let at = 0, turn = 0; at < whole.length; turn++) {
        const end = at + (cuts[turn % cuts.length] ?? 1);
        for (const { stream, bytes, last } of reader.push(whole.subarray(at, end))) {
          seen[stream] += bytes.toString('hex');
          if (last) ended += 1;
        }
        at = end;
      }
      expect(ended).toBe(frames.filter(({ bytes }) => bytes.length > 0).length);
      for (const name of ['stdout', 'stderr'] as const) {
        const sent = frames.filter(({ stream }) => stream === name).map(({ bytes }) => Buffer.from(bytes));
        expect(seen[name]).toBe(Buffer.concat(sent).toString('hex'));
      }
    }),
  );
});
