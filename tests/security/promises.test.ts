import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const text = readFileSync(join(ROOT, 'docs/security.md'), 'utf8');
const files = globSync(['packages/*/src/**/*.ts', 'tests/**/*.ts', 'scripts/**/*.{ts,mjs}'], { cwd: ROOT });

interface Promised {
  /** The promise itself, as its row begins. */
  promise: string;
  /** Files of tests, as far as their names are given. */
  tests: string[];
}

/** The rows of tables whose last column is `test`. */
function rows(page: string): Promised[] {
  const tables = page.split(/\n\n/).filter((block) => /^\| promise \|.*\| test \|\n/.test(block));
  return tables.flatMap((table) =>
    table
      .trim()
      .split('\n')
      .slice(2)
      .map((row) => row.split('|').slice(1, -1))
      .map((columns) => ({ promise: (columns[0] ?? '').trim(), tests: named(columns.at(-1) ?? '') })),
  );
}

/** Names of files of code in the text. */
function named(part: string): string[] {
  return [...part.matchAll(/`([\w./-]+\.(?:test\.)?(?:ts|mjs))`/g)].map(([, name = '']) => name);
}

/** Files that are called so, or that end so. */
function found(name: string): string[] {
  return files.filter((file) => file === name || file.endsWith(`/${name}`));
}

describe('docs/security.md', () => {
  const promised = rows(text);

  it('is read', () => {
    expect(promised.length).toBeGreaterThan(70);
    expect(
      rows('| promise | against | mechanism | test |\n|---|---|---|---|\n| a | b | `c.ts` | `d.test.ts`, – |'),
    ).toEqual([{ promise: 'a', tests: ['d.test.ts'] }]);
  });

  it('names a test at every promise', () => {
    expect(promised.filter(({ tests }) => tests.length === 0)).toEqual([]);
  });

  it('names files that are there, each by a name that is one file’s alone', () => {
    expect(named(text).filter((name) => found(name).length !== 1)).toEqual([]);
  });

  it('names tests that test something', () => {
    const idle = promised
      .flatMap(({ tests }) => tests)
      .filter(
        (name) =>
          !/\b(?:it|describe)(?:\.\w+)*\(|\bonEachProvider\(|describeDatabases\(|Contract\(/.test(
            readFileSync(join(ROOT, found(name)[0] ?? ''), 'utf8'),
          ),
      );
    expect(idle).toEqual([]);
  });
});
