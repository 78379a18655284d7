import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { moduleFile } from '../src/module.ts';

it('the module is the one whose hash is kept beside it, and no path of the machine that built it is in it', () => {
  const bytes = readFileSync(moduleFile);
  const hash = createHash('sha256').update(bytes).digest('hex');
  expect(readFileSync(`${moduleFile}.sha256`, 'utf8')).toBe(`${hash}  policy_engine.wasm\n`);
  expect(bytes.includes('/.cargo/')).toBe(false);
  expect(bytes.includes('/home/')).toBe(false);
});
