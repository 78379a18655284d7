import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createCoffeePlugin } from '../plugins/coffee.ts';
import { createJavaScriptPlugin } from '../plugins/javascript.ts';
import { createRegistry } from '../plugins/registry.ts';
import { compileAll } from './compile-all.ts';
import { createSourceStore } from './source-store.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'handset-compile-'));
  mkdirSync(path.join(root, 'app'));
  for (let i = 0; i < 20; i += 1) writeFileSync(path.join(root, `app/m${i}.coffee`), `@m${i} = => "#{${i}}"\n`);
  writeFileSync(path.join(root, 'app/bad.coffee'), 'a = (\n');
  writeFileSync(path.join(root, 'app/latin.coffee'), Buffer.from('a = "\xe9"', 'latin1'));
  writeFileSync(path.join(root, 'app/plain.js'), 'var plain;');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

it('gives the same results with a second thread as without', async () => {
  const plugins = createRegistry([createCoffeePlugin(), createJavaScriptPlugin()]);
  const store = createSourceStore(root);
  store.readAll();
  const jobs = [...store.names()].map((name) => ({ name, target: 'script' as const }));
  const alone = await compileAll(jobs, plugins, store, () => false);
  const helped = await compileAll(jobs, plugins, store, () => true);
  const sorted = (results: typeof alone) => [...results].sort(([a], [b]) => (a < b ? -1 : 1));
  expect(sorted(helped)).toEqual(sorted(alone));
  expect(alone.size).toBe(23);
  expect(
    [...alone]
      .filter(([, result]) => !result.ok)
      .map(([name]) => name)
      .sort(),
  ).toEqual(['app/bad.coffee', 'app/latin.coffee']);
});
