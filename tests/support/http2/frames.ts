/** What a client of HTTP/2 says first (RFC 9113, 3.4). */
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export const TYPE = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, window: 8, continuation: 9 };
/** END_STREAM and END_HEADERS. */
export const FLAG = { end: 1, head: 4 };

export function frame(type: number, flags: number, streamId: number, payload: Uint8Array = new Uint8Array()): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** An RST_STREAM with that code. */
export function reset(streamId: number, code: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(code);
  return frame(TYPE.reset, 0, streamId, payload);
}

/** A block of HPACK that uses no table and no Huffman code; names and values up to 126 bytes. */
export function block(headers: Record<string, string>): Buffer {
  const text = (value: string): Buffer => Buffer.concat([Buffer.from([value.length]), Buffer.from(value, 'latin1')]);
  return Buffer.concat(Object.entries(headers).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

/** The head of a request; without `end` a body follows. */
export function head(streamId: number, headers: Record<string, string>, end = 0): Buffer {
  const whole = { ':method': 'POST', ':scheme': 'http', ':authority': 'x', ':path': '/', ...headers };
  return frame(TYPE.headers, FLAG.head | end, streamId, block(whole));
}
