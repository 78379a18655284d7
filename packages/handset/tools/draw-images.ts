// Draws every image of the scaffold and of the example application. Run it after a change: node tools/draw-images.ts
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { drawPng, type Painter, type Rgba } from './png.ts';
import { any, box, clip, fill, over, ring, shade, stroke, triangle } from './shapes.ts';

interface Palette {
  readonly ink: Rgba;
  readonly line: Rgba;
  readonly barTop: Rgba;
  readonly barBottom: Rgba;
  readonly tabTop: Rgba;
  readonly tabBottom: Rgba;
  readonly buttonTop: Rgba;
  readonly buttonBottom: Rgba;
  readonly arrow: Rgba;
}

const rgb = (hex: string): Rgba => {
  const n = Number.parseInt(hex, 16);
  return [n >> 16, (n >> 8) & 255, n & 255, 255];
};

const LIGHT: Palette = {
  ink: rgb('ffffff'),
  line: rgb('0c4a5c'),
  barTop: rgb('1f7a93'),
  barBottom: rgb('0f5a70'),
  tabTop: rgb('f4f7f8'),
  tabBottom: rgb('d5e0e4'),
  buttonTop: rgb('2f8ca6'),
  buttonBottom: rgb('146a82'),
  arrow: rgb('3b5f6b'),
};

const DARK: Palette = {
  ink: rgb('ffd9a0'),
  line: rgb('15151c'),
  barTop: rgb('3a3347'),
  barBottom: rgb('221d2c'),
  tabTop: rgb('2c2735'),
  tabBottom: rgb('1b1822'),
  buttonTop: rgb('5b4a6e'),
  buttonBottom: rgb('3b2f4a'),
  arrow: rgb('e0a458'),
};

function themeImages(p: Palette): Record<string, Buffer> {
  const icon = (painter: Painter) => drawPng(40, 40, painter);
  const arrowUp = any(stroke(5, 13, 10, 7, 2.4), stroke(10, 7, 15, 13, 2.4));
  const arrowDown = any(stroke(5, 7, 10, 13, 2.4), stroke(10, 13, 15, 7, 2.4));
  const grid = [11, 18, 25].flatMap((x) => [11, 18, 25].map((y) => box(x, y, 5, 5, 1)));
  return {
    'arrow-close.png': drawPng(20, 20, fill(arrowUp, p.arrow)),
    'arrow-open.png': drawPng(20, 20, fill(arrowDown, p.arrow)),
    'back_40x40.png': icon(
      fill(any(stroke(12, 20, 29, 20, 3), stroke(12, 20, 19, 13, 3), stroke(12, 20, 19, 27, 3)), p.ink),
    ),
    // No sides: it repeats from left to right under buttons of any width.
    'button-bg_40x40.png': icon(
      over(fill(any(box(0, 0, 40, 1), box(0, 39, 40, 1)), p.line), shade(40, p.buttonTop, p.buttonBottom)),
    ),
    'close_40x40.png': icon(fill(any(stroke(13, 13, 27, 27, 3), stroke(27, 13, 13, 27, 3)), p.ink)),
    'grid_40x40.png': icon(fill(any(...grid), p.ink)),
    'option-menu_titlebar.png': icon(
      fill(any(box(11, 12, 18, 3, 1.5), box(11, 18.5, 18, 3, 1.5), box(11, 25, 18, 3, 1.5)), p.ink),
    ),
    'refresh_40x40.png': icon(
      fill(
        any(
          ring(20, 20, 8, 3, 0.5, Math.PI * 2 - 0.5),
          triangle([
            [23, 18],
            [31, 18],
            [30, 9],
          ]),
        ),
        p.ink,
      ),
    ),
    'search_40x40.png': icon(fill(any(ring(18, 18, 6.5, 3), stroke(23, 23, 29, 29, 3.6)), p.ink)),
    'tab_bg.png': drawPng(4, 36, over(fill(box(0, 34, 4, 2), p.buttonTop), shade(36, p.tabTop, p.tabBottom))),
    'title-bar.png': drawPng(4, 40, over(fill(box(0, 39, 4, 1), p.line), shade(40, p.barTop, p.barBottom))),
  };
}

/** A phone with a page on it. */
function scaffoldIcon(): Buffer {
  const paper = over(
    fill(any(box(25, 20, 14, 3), box(25, 27, 14, 2), box(25, 32, 10, 2), box(25, 37, 12, 2)), LIGHT.barBottom),
    fill(box(22, 14, 20, 32, 1), rgb('ffffff')),
  );
  const phone = over(fill(box(29, 49, 6, 3, 1.5), rgb('cfe3ea')), fill(box(19, 8, 26, 48, 4), rgb('10303a')));
  return drawPng(64, 64, over(paper, phone, clip(box(2, 2, 60, 60, 12), shade(64, LIGHT.buttonTop, LIGHT.barBottom))));
}

/** A folded newspaper. */
function newsIcon(): Buffer {
  const lines = any(
    box(18, 31, 13, 2),
    box(18, 36, 13, 2),
    box(18, 41, 13, 2),
    box(18, 46, 13, 2),
    box(34, 41, 12, 2),
    box(34, 46, 12, 2),
  );
  const print = over(
    fill(any(box(18, 17, 28, 5), lines), rgb('463a58')),
    fill(box(34, 27, 12, 11), rgb('e0a458')),
    fill(box(14, 12, 36, 40, 2), rgb('fbf7ef')),
  );
  return drawPng(64, 64, over(print, clip(box(2, 2, 60, 60, 12), shade(64, rgb('6d5a84'), rgb('3b2f4a')))));
}

/** Drawings for the stories of the news reader: hills under a sky, each with its own colours and heights. */
function storyImage(seed: number, sky: string, hill: string, near: string): Buffer {
  const far = (x: number) => 34 + 8 * Math.sin(x / (13 + seed) + seed);
  const close = (x: number) => 46 + 6 * Math.sin(x / (9 + seed * 2) + seed * 3);
  const sun = ring(20 + seed * 11, 16, 0, 14);
  return drawPng(96, 64, (x, y) => {
    if (y > close(x)) return rgb(near);
    if (y > far(x)) return rgb(hill);
    return sun(x, y) ? rgb('fff3c4') : rgb(sky);
  });
}

function save(folder: string, images: Record<string, Buffer>): void {
  mkdirSync(folder, { recursive: true });
  for (const [name, bytes] of Object.entries(images)) writeFileSync(path.join(folder, name), bytes);
}

const here = path.resolve(import.meta.dirname, '..');
const scaffold = path.join(here, 'scaffold/app/assets');
const news = path.join(here, 'examples/news-reader/app/assets');
save(scaffold, { 'icon.png': scaffoldIcon() });
save(path.join(scaffold, 'light/images'), themeImages(LIGHT));
save(news, { 'icon.png': newsIcon() });
save(path.join(news, 'day/images'), themeImages(LIGHT));
save(path.join(news, 'night/images'), themeImages(DARK));
save(path.join(news, 'stories'), {
  'ferry.png': storyImage(1, 'a9d3e8', '5f8fa8', '2f5f7a'),
  'bridge.png': storyImage(2, 'f2c9a1', 'b07a5a', '6a4a3f'),
  'orchard.png': storyImage(3, 'cfe6b8', '7fae63', '44743a'),
  'market.png': storyImage(4, 'e8d5ef', 'a07fb5', '5b4a6e'),
  'signal.png': storyImage(5, 'd3dbe8', '8a98b0', '4a566b'),
});
