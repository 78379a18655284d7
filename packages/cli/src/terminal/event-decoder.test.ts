import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeEvents, linesOf, type ServerEvent } from './event-decoder.ts';

async function* pieces(text: string, cuts: number[]): AsyncGenerator<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  let from = 0;
  for (const to of [...places, bytes.length]) {
    yield bytes.slice(from, to);
    from = to;
  }
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

async function decode(text: string, cuts: number[] = []): Promise<ServerEvent[]> {
  return all(decodeEvents(pieces(text, cuts)));
}

describe('decodeEvents', () => {
  it.each<[string, ServerEvent[]]>([
    ['data: a\n\n', [{ event: 'message', data: 'a' }]],
    ['data:a\r\ndata: b\r\n\r\n', [{ event: 'message', data: 'a\nb' }]],
    ['event: error\rdata: x\r\r', [{ event: 'error', data: 'x' }]],
    [': ping\n\nid: 4\nretry: 10\ndata:  two blanks\n\n', [{ event: 'message', data: ' two blanks' }]],
    [
      'data\n\nevent: lost\n\ndata: 2\n\n',
      [
        { event: 'message', data: '' },
        { event: 'message', data: '2' },
      ],
    ],
    ['data: whole\n\ndata: unfinished', [{ event: 'message', data: 'whole' }]],
    ['', []],
  ])('%j', async (text, events) => {
    expect(await decode(text)).toEqual(events);
  });

  it('gives the same events however the bytes are cut', async () => {
    const line = fc.string({ unit: 'binary' }).map((text) => text.replace(/[\r\n]/g, ' '));
    const ending = fc.constantFrom('\n', '\r\n', '\r');
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(line, ending)), fc.array(fc.nat()), async (messages, cuts) => {
        const text = messages.map(([data, end]) => `data: ${data.toWellFormed()}${end}${end}`).join('');
        const expected = messages.map(([data]) => ({ event: 'message', data: data.toWellFormed() }));
        expect(await decode(text, cuts)).toEqual(expected);
      }),
    );
  });
});

describe('linesOf', () => {
  it('gives a last line that nothing ends', async () => {
    expect(await all(linesOf(pieces('a\nb', [1])))).toEqual(['a', 'b']);
  });
});
