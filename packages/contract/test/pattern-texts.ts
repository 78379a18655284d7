import fc from 'fast-check';
import type { ShapeDef } from '../src/model.ts';
import { wholeMatch } from '../src/patterns.ts';

/** Texts that satisfy a shape's pattern and length, made from the pattern itself. Kept, since making them is slow. */
const pools = new Map<string, readonly string[]>();

/** What the generator cannot take is put in terms that it can; whatever it makes is checked against the real pattern. */
function simplified(pattern: string): string {
  return pattern.replaceAll(/\(\?!.*?\)/g, '').replaceAll('[^\\p{C}]', '[ -~\u00e0-\u00ff\u4e00-\u4eff]');
}

function sample(pattern: string, size: 'xsmall' | 'small' | 'medium'): string[] {
  return fc.sample(fc.stringMatching(wholeMatch(simplified(pattern)), { size }), { numRuns: 8, seed: 20260101 });
}

/** At least one text for every pattern of the model; throws when none can be made, so that no shape goes untested. */
export function patternTexts(shape: ShapeDef): readonly string[] {
  const { pattern = '', min = 0, max = 2000 } = shape;
  const key = `${min} ${max} ${pattern}`;
  const known = pools.get(key);
  if (known !== undefined) return known;
  const regex = wholeMatch(pattern);
  const fits = (text: string): boolean => [...text].length >= min && [...text].length <= max && regex.test(text);
  // A pattern with an open end is also tried with exactly the room that min and max leave.
  const closed = pattern.replace(/[*+]$/, `{${Math.max(min - 4, 1)},${Math.min(max - 4, min + 10)}}`);
  const pool = new Set<string>();
  const sizes = ['xsmall', 'small', 'medium'] as const;
  for (const source of closed === pattern || min < 5 ? [pattern] : [pattern, closed]) {
    for (const size of sizes) {
      if (pool.size < 6) for (const text of sample(source, size)) if (fits(text)) pool.add(text);
    }
  }
  if (pool.size === 0) throw new Error(`No text made for ${key}`);
  const texts = [...pool];
  pools.set(key, texts);
  return texts;
}
