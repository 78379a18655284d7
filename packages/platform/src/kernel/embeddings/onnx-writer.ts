/** Data types of ONNX tensors that are used here (onnx.proto, TensorProto.DataType). */
export const ONNX_FLOAT = 1;
export const ONNX_INT64 = 7;

type Attributes = Record<string, number | { ints: number[] } | { float: number }>;

/**
 * Builds an ONNX model: nodes in order, constants, inputs, outputs. The field numbers are those of onnx.proto (IR version
 * 8, operator set 17).
 */
export class OnnxWriter {
  readonly #parts: Uint8Array[] = [];
  #names = 0;

  /** A node; gives the name of its one output. */
  node(operator: string, inputs: readonly string[], attributes: Attributes = {}, output = `t${this.#names++}`): string {
    const attribute = Object.entries(attributes).map(([name, value]) => bytes(5, attributeOf(name, value)));
    this.#parts.push(
      bytes(1, join(...inputs.map((input) => text(1, input)), text(2, output), text(4, operator), ...attribute)),
    );
    return output;
  }

  /** A constant tensor; gives its name. */
  constant(type: number, shape: readonly number[], raw: Uint8Array, name = `c${this.#names++}`): string {
    const dimensions = shape.map((size) => number(1, size));
    this.#parts.push(bytes(5, join(...dimensions, number(2, type), text(8, name), bytes(9, raw))));
    return name;
  }

  /** A constant tensor of floats whose bytes stand in `file`, beside the model; gives its name. */
  stored(shape: readonly number[], name: string, place: { file: string; offset: number; length: number }): string {
    const dimensions = shape.map((size) => number(1, size));
    const external = Object.entries({ location: place.file, offset: place.offset, length: place.length }).map(
      ([key, value]) => bytes(13, join(text(1, key), text(2, String(value)))),
    );
    this.#parts.push(bytes(5, join(...dimensions, number(2, ONNX_FLOAT), text(8, name), ...external, number(14, 1))));
    return name;
  }

  floats(values: readonly number[], shape: readonly number[] = []): string {
    return this.constant(ONNX_FLOAT, shape, new Uint8Array(Float32Array.from(values).buffer));
  }

  integers(values: readonly number[]): string {
    return this.constant(ONNX_INT64, [values.length], new Uint8Array(BigInt64Array.from(values.map(BigInt)).buffer));
  }

  /** Sizes are numbers, or names for those that only a run knows. */
  input(name: string, type: number, shape: readonly (number | string)[]): string {
    this.#parts.push(bytes(11, valueInfo(name, type, shape)));
    return name;
  }

  output(name: string, type: number, shape: readonly (number | string)[]): void {
    this.#parts.push(bytes(12, valueInfo(name, type, shape)));
  }

  model(): Uint8Array {
    const graph = join(...this.#parts, text(2, 'graph'));
    return join(number(1, 8), bytes(7, graph), bytes(8, join(text(1, ''), number(2, 17))));
  }
}

function valueInfo(name: string, type: number, shape: readonly (number | string)[]): Uint8Array {
  const dimensions = shape.map((size) => bytes(1, typeof size === 'number' ? number(1, size) : text(2, size)));
  return join(text(1, name), bytes(2, bytes(1, join(number(1, type), bytes(2, join(...dimensions))))));
}

function attributeOf(name: string, value: Attributes[string]): Uint8Array {
  if (typeof value === 'number') return join(text(1, name), number(3, value), number(20, 2));
  if ('ints' in value) return join(text(1, name), ...value.ints.map((each) => number(8, each)), number(20, 7));
  const raw = new Uint8Array(5);
  raw[0] = (2 << 3) | 5;
  new DataView(raw.buffer).setFloat32(1, value.float, true);
  return join(text(1, name), raw, number(20, 1));
}

/** Protocol buffers: a varint field. Negative numbers are sent as 64-bit two's complement. */
function number(field: number, value: number): Uint8Array {
  return join(varint(BigInt(field << 3)), varint(BigInt.asUintN(64, BigInt(value))));
}

function text(field: number, value: string): Uint8Array {
  return bytes(field, new TextEncoder().encode(value));
}

function bytes(field: number, value: Uint8Array): Uint8Array {
  return join(varint(BigInt((field << 3) | 2)), varint(BigInt(value.length)), value);
}

function varint(value: bigint): Uint8Array {
  const out: number[] = [];
  let left = value;
  while (left > 0x7fn) {
    out.push(Number(left & 0x7fn) | 0x80);
    left >>= 7n;
  }
  out.push(Number(left));
  return Uint8Array.from(out);
}

function join(...parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(parts);
}
