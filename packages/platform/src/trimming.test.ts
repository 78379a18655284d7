import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';

/** A run of one thing before the end, and nothing else: it is looked for from each of its characters again (`trimEnd` looks once). */
const RUN_AT_END = /^\/(?:\\.|\[(?:\\.|[^\]])+\]|[^\\^[(])[+*]\$\/[a-z]*$/;

/** Regular expressions in `source` that take quadratic time on a run that does not end the text. */
function trims(source: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node) && RUN_AT_END.test(node.text)) found.push(node.text);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile('x.ts', source, ts.ScriptTarget.Latest, true));
  return found;
}

it('finds a regular expression that trims, and leaves others alone', () => {
  const source = String.raw`a(/\/+$/); b(/[.!? ]+$/u); c(/\s*$/); d(/^\/+$/); e(/\/$/); f(/x+y$/); g(/\s+/g)`;
  expect(trims(source)).toEqual([String.raw`/\/+$/`, '/[.!? ]+$/u', String.raw`/\s*$/`]);
});

it('nothing in the server trims by a regular expression', () => {
  const cwd = join(import.meta.dirname, '../..');
  const found = globSync('{platform,contract}/src/**/*.ts', { cwd })
    .filter((path) => !/[.]test[.]ts$|testing\//.test(path))
    .flatMap((path) => trims(readFileSync(join(cwd, path), 'utf8')).map((one) => `${path}: ${one}`));
  expect(found).toEqual([]);
});
