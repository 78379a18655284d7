import type { Output } from '../build/output.ts';
import { type Problem, problem } from '../problem.ts';
import { type ImageSize, imageSize } from './image-size.ts';

/** The longer side of the largest screen, in pixels. */
const SCREEN = 400;
const ICON_LIMIT = 128;

/** A background's name says what it fills by repetition: `button-bg_40x40.png` of the first such phones is 5 × 40. */
const BACKGROUND = /\bbg_\d+x\d+\.[a-z]+$/i;

/** Check every image: readable, no larger than a screen, and as large as its name says (`back_40x40.png`). */
export function checkImages(outputs: ReadonlyMap<string, Output>): Problem[] {
  const problems: Problem[] = [];
  for (const [name, output] of outputs) {
    if (!/\.(png|gif|jpe?g)$/i.test(name)) continue;
    const file = output.source;
    const size = imageSize(output.read());
    if (!size) {
      problems.push(problem('lint-image-broken', { file, message: 'This is not a PNG, GIF or JPEG image.' }));
      continue;
    }
    const { width, height } = size;
    const said = /_(\d+)x(\d+)\.[a-z]+$/i.exec(name);
    if (said && !fits({ width, height }, { width: Number(said[1]), height: Number(said[2]) }, BACKGROUND.test(name))) {
      const message = `The name says ${said[1]} × ${said[2]}, and the image is ${width} × ${height}.`;
      problems.push(problem('lint-image-name', { file, message }));
    }
    const limit = name === 'icon.png' ? ICON_LIMIT : SCREEN;
    if (Math.max(width, height) > limit) {
      const message = `The image is ${width} × ${height} pixels; ${limit} is the most that is shown.`;
      problems.push(problem('lint-image-size', { file, message }));
    }
    if (name === 'icon.png' && width !== height) {
      problems.push(
        problem('lint-image-size', { file, message: `The icon is ${width} × ${height}; it should be square.` }),
      );
    }
  }
  return problems;
}

function fits(is: ImageSize, said: ImageSize, repeats: boolean): boolean {
  const [across, down] = [is.width === said.width, is.height === said.height];
  if (across && down) return true;
  return repeats && ((across && is.height < said.height) || (down && is.width < said.width));
}
