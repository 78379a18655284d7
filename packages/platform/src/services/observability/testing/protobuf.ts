/** Writes protobuf for tests, apart from what reads it. */
export function message(...fields: [number: number, value: string | Buffer | bigint | { fixed: bigint }][]): Buffer {
  return Buffer.concat(
    fields.map(([number, value]) => {
      if (typeof value === 'bigint') return Buffer.concat([varint(BigInt(number) << 3n), varint(value)]);
      if (typeof value === 'object' && 'fixed' in value) {
        const bytes = Buffer.alloc(8);
        bytes.writeBigUInt64LE(BigInt.asUintN(64, value.fixed));
        return Buffer.concat([varint((BigInt(number) << 3n) | 1n), bytes]);
      }
      const bytes = Buffer.from(value as string);
      return Buffer.concat([varint((BigInt(number) << 3n) | 2n), varint(BigInt(bytes.length)), bytes]);
    }),
  );
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Buffer.from([...bytes, Number(rest)]);
}

export const attribute = (key: string, value: string | bigint | Buffer): Buffer =>
  message(
    [1, key],
    [2, typeof value === 'bigint' ? message([3, value]) : typeof value === 'string' ? message([1, value]) : value],
  );

export interface Made {
  traceId?: string;
  spanId?: string;
  parent?: string;
  name?: string;
  start?: bigint;
  end?: bigint;
  attributes?: Buffer[];
}

/** A span as an exporter writes it. */
export function span({
  traceId = 'a'.repeat(32),
  spanId = 'b'.repeat(16),
  parent = '',
  name = 'work',
  ...made
}: Made): Buffer {
  const { start = 1_764_000_000_000_000_000n, end = start + 5_000_000n, attributes = [] } = made;
  return message(
    [1, Buffer.from(traceId, 'hex')],
    [2, Buffer.from(spanId, 'hex')],
    ...(parent === '' ? [] : [[4, Buffer.from(parent, 'hex')] as [number, Buffer]]),
    [5, name],
    [6, 1n],
    [7, { fixed: start }],
    [8, { fixed: end }],
    ...attributes.map((one) => [9, one] as [number, Buffer]),
  );
}

/** A request with these spans of one resource. */
export function request(spans: readonly Buffer[], service = 'agent'): Buffer {
  const resource = message([1, attribute('service.name', service)]);
  const scope = message([1, message([1, 'test'])], ...spans.map((one) => [2, one] as [number, Buffer]));
  return message([1, message([1, resource], [2, scope])]);
}
