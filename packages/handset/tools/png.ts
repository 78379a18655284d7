import { crc32, deflateSync } from 'node:zlib';

/** Colour of a point: red, green, blue and opacity, each 0 to 255. */
export type Rgba = readonly [number, number, number, number];

/** Draws: the colour at a point, in pixels from the top left corner; undefined is clear. */
export type Painter = (x: number, y: number) => Rgba | undefined;

const SAMPLES = 4;

/** Render a picture with 16 samples a pixel and encode it as PNG. Same painter, same bytes. */
export function drawPng(width: number, height: number, paint: Painter): Buffer {
  const raw = Buffer.alloc((width * 4 + 1) * height);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      raw.set(pixel(x, y, paint), y * (width * 4 + 1) + 1 + x * 4);
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 6, 0, 0, 0], 8);
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(raw, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function pixel(x: number, y: number, paint: Painter): number[] {
  const sum = [0, 0, 0, 0];
  for (let i = 0; i < SAMPLES * SAMPLES; i += 1) {
    const dx = ((i % SAMPLES) + 0.5) / SAMPLES;
    const dy = (Math.floor(i / SAMPLES) + 0.5) / SAMPLES;
    const [r, g, b, a] = paint(x + dx, y + dy) ?? [0, 0, 0, 0];
    sum[0] = (sum[0] ?? 0) + r * a;
    sum[1] = (sum[1] ?? 0) + g * a;
    sum[2] = (sum[2] ?? 0) + b * a;
    sum[3] = (sum[3] ?? 0) + a;
  }
  const [r = 0, g = 0, b = 0, a = 0] = sum;
  if (a === 0) return [0, 0, 0, 0];
  return [Math.round(r / a), Math.round(g / a), Math.round(b / a), Math.round(a / (SAMPLES * SAMPLES))];
}

function chunk(type: string, data: Buffer): Buffer {
  const out = Buffer.alloc(data.length + 12);
  out.writeUInt32BE(data.length, 0);
  out.write(type, 4, 'latin1');
  data.copy(out, 8);
  out.writeUInt32BE(crc32(out.subarray(4, data.length + 8)), data.length + 8);
  return out;
}
