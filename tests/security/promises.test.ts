import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const text = readFileSync(join(ROOT, 'docs/security.md'), 'utf8');
const files = globSync(['packages/*/{src,test}/**/*.ts', 'tests/**/*.ts', 'scripts/**/*.{ts,mjs}'], { cwd: ROOT });

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

interface Titled {
  title: string;
  /** One of these has it. */
  files: string[];
}

/** Titles of tests (in italics): in the column of tests each is in the file that was named last, and a control's is in any of its row. */
function titles(page: string): Titled[] {
  const attacks = page.split(/\n\n/).find((block) => /^\| \| what got through \| test \|/.test(block)) ?? '';
  const rows = attacks.split('\n').slice(2);
  return rows.flatMap((row) => {
    const [, , , tests = '', notices = ''] = row.split('|');
    const all = named(row);
    return [...titled(tests), ...titled(notices).map(({ title }) => ({ title, files: all }))];
  });
}

function titled(column: string): Titled[] {
  const found: Titled[] = [];
  let files: string[] = [];
  for (const [, name, title] of column.matchAll(/`([\w./-]+\.test\.ts)`|\*([^*]+)\*/g)) {
    if (name !== undefined) files = [name];
    else if (title !== undefined) found.push({ title, files });
  }
  return found;
}

/** The text of a test and of what it imports from beside it: attacks stand there that several providers have. */
function withNeighbours(file: string): string {
  const path = join(ROOT, found(file)[0] ?? '');
  const own = readFileSync(path, 'utf8');
  const beside = [...own.matchAll(/from '(\.\/[\w.-]+\.ts)'/g)].map(([, name = '']) => join(path, '..', name));
  return [own, ...beside.map((name) => readFileSync(name, 'utf8'))].join('\n').replace(/\s+/g, ' ');
}

/** Whether a test has that title; `…` stands for any text. */
function hasTitle(text: string, title: string): boolean {
  return title
    .split('…')
    .map((part) => part.trim())
    .every((part) => text.includes(part));
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

  it('names titles that the named files have', () => {
    const all = titles(text);
    expect(all.length).toBeGreaterThan(35);
    const missing = all.filter(({ files, title }) => !files.some((file) => hasTitle(withNeighbours(file), title)));
    expect(missing).toEqual([]);
    // The control.
    const page =
      '| | what got through | test | notices |\n|---|---|---|---|\n| 1 | a | `b.test.ts`: *c … d*, *e*; `f.test.ts` | *g* |';
    expect(titles(page)).toEqual([
      { files: ['b.test.ts'], title: 'c … d' },
      { files: ['b.test.ts'], title: 'e' },
      { files: ['b.test.ts', 'f.test.ts'], title: 'g' },
    ]);
    expect(hasTitle("it('%s c and d'", 'c … d')).toBe(true);
    expect(hasTitle("it('%s c and d'", 'c … f')).toBe(false);
  });
});
