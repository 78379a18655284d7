import { open } from 'node:fs/promises';

/** One tensor of a safetensors file: little-endian 32-bit floats at `offset` of the file, in bytes. */
export interface Tensor {
  shape: number[];
  offset: number;
  length: number;
}

const MAX_HEADER = 10_000_000;

/**
 * Finds the float32 tensors of a safetensors file (8 bytes header length, JSON header, data); the data is not read. Throws for a file of any
 * other shape; tensors of other types are left out.
 */
export async function readSafetensors(path: string): Promise<Map<string, Tensor>> {
  await using file = await open(path);
  const { size } = await file.stat();
  const start = Buffer.alloc(8);
  await file.read(start, 0, 8, 0);
  const length = size >= 8 ? Number(start.readBigUInt64LE()) : Number.POSITIVE_INFINITY;
  if (length > MAX_HEADER || 8 + length > size)
    throw new Error('no safetensors file: its header has no sensible length');
  const { buffer } = await file.read(Buffer.alloc(length), 0, length, 8);
  const header: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(buffer));
  if (typeof header !== 'object' || header === null)
    throw new Error('no safetensors file: its header is not an object');
  const data = 8 + length;
  const tensors = new Map<string, Tensor>();
  for (const [name, entry] of Object.entries(header)) {
    if (name === '__metadata__' || !isFloatEntry(entry)) continue;
    const [from, to] = entry.data_offsets;
    const bytes = entry.shape.reduce((product, dimension) => product * dimension, 4);
    if (data + to > size || to - from !== bytes) throw new Error(`the tensor ${name} lies outside the file`);
    tensors.set(name, { shape: entry.shape, offset: data + from, length: bytes });
  }
  return tensors;
}

function isFloatEntry(entry: unknown): entry is { shape: number[]; data_offsets: [number, number] } {
  if (typeof entry !== 'object' || entry === null || !('dtype' in entry) || entry.dtype !== 'F32') return false;
  const numbers = (value: unknown): boolean =>
    Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0);
  return 'shape' in entry && numbers(entry.shape) && 'data_offsets' in entry && numbers(entry.data_offsets);
}
