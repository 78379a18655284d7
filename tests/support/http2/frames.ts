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

/** Names and values of a head in their order; a name may come again. */
export type Fields = readonly (readonly [name: string, value: string])[];

/** A block of HPACK that uses no table and no Huffman code. */
function block(fields: Fields): Buffer {
  const text = (value: string): Buffer => Buffer.concat([integer(value.length), Buffer.from(value, 'latin1')]);
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

/** A number behind one bit (RFC 7541, 5.1). */
function integer(value: number): Buffer {
  if (value < 127) return Buffer.from([value]);
  const bytes = [127];
  let rest = value - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}

/** What every receiver takes in a frame (RFC 9113, 4.2). */
export const MOST_IN_FRAME = 16_384;

/** A head with those fields, which goes on in CONTINUATION where it is long; without `end` a body follows. */
export function headOf(streamId: number, fields: Fields, end = 0): Buffer {
  const whole = block(fields);
  const first = whole.subarray(0, MOST_IN_FRAME);
  const frames = [frame(TYPE.headers, end | (first.length === whole.length ? FLAG.head : 0), streamId, first)];
  for (let at = MOST_IN_FRAME; at < whole.length; at += MOST_IN_FRAME) {
    const last = at + MOST_IN_FRAME >= whole.length ? FLAG.head : 0;
    frames.push(frame(TYPE.continuation, last, streamId, whole.subarray(at, at + MOST_IN_FRAME)));
  }
  return Buffer.concat(frames);
}

/** The head of a request; without `end` a body follows. */
export function head(streamId: number, headers: Record<string, string>, end = 0): Buffer {
  const whole = { ':method': 'POST', ':scheme': 'http', ':authority': 'x', ':path': '/', ...headers };
  return headOf(streamId, Object.entries(whole), end);
}
