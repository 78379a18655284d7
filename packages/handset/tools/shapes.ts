import type { Painter, Rgba } from './png.ts';

/** Whether a point is inside. */
export type Shape = (x: number, y: number) => boolean;

/** A line of the given width with round ends. */
export function stroke(x1: number, y1: number, x2: number, y2: number, width: number): Shape {
  const dx = x2 - x1;
  const dy = y2 - y1;
  return (x, y) => {
    const t = Math.max(0, Math.min(1, ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy)));
    return Math.hypot(x - x1 - t * dx, y - y1 - t * dy) <= width / 2;
  };
}

/** A ring, whole or from one angle to another (radians, clockwise from the right). */
export function ring(cx: number, cy: number, radius: number, width: number, from = 0, to = Math.PI * 2): Shape {
  return (x, y) => {
    if (Math.abs(Math.hypot(x - cx, y - cy) - radius) > width / 2) return false;
    const angle = (Math.atan2(y - cy, x - cx) + Math.PI * 2) % (Math.PI * 2);
    return angle >= from && angle <= to;
  };
}

export function box(left: number, top: number, width: number, height: number, radius = 0): Shape {
  return (x, y) => {
    const dx = Math.max(left + radius - x, x - (left + width - radius), 0);
    const dy = Math.max(top + radius - y, y - (top + height - radius), 0);
    return Math.hypot(dx, dy) <= radius || (dx === 0 && dy === 0);
  };
}

export function triangle(points: readonly [number, number][]): Shape {
  return (x, y) => {
    const signs = points.map(([ax, ay], i) => {
      const [bx, by] = points[(i + 1) % points.length] ?? [0, 0];
      return Math.sign((bx - ax) * (y - ay) - (by - ay) * (x - ax));
    });
    return signs.every((s) => s >= 0) || signs.every((s) => s <= 0);
  };
}

export const any =
  (...shapes: readonly Shape[]): Shape =>
  (x, y) =>
    shapes.some((shape) => shape(x, y));

export const fill =
  (shape: Shape, colour: Rgba): Painter =>
  (x, y) =>
    shape(x, y) ? colour : undefined;

/** Colours from top to bottom. */
export const shade =
  (height: number, top: Rgba, bottom: Rgba): Painter =>
  (_x, y) => {
    const t = Math.max(0, Math.min(1, y / height));
    return [mix(top[0], bottom[0], t), mix(top[1], bottom[1], t), mix(top[2], bottom[2], t), mix(top[3], bottom[3], t)];
  };

function mix(a: number, b: number, t: number): number {
  return a + (b - a) * t;
}

/** The first painter that paints a point wins. */
export const over =
  (...painters: readonly Painter[]): Painter =>
  (x, y) => {
    for (const painter of painters) {
      const colour = painter(x, y);
      if (colour) return colour;
    }
    return undefined;
  };

export const clip =
  (shape: Shape, painter: Painter): Painter =>
  (x, y) =>
    shape(x, y) ? painter(x, y) : undefined;
