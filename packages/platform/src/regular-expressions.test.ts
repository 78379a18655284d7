import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { takesLinearTime } from '../../contract/test/ambiguity.ts';

/** A run of one thing before the end, and nothing else: it is looked for from each of its characters again (`trimEnd` looks once). */
const RUN_AT_END = /^\/(?:\\.|\[(?:\\.|[^\]])+\]|[^\\^[(])[+*]\$\/[a-z]*$/;

/** Those that the test of ambiguity cannot read (they look around, or ask for a word boundary), by their file: each was judged by a person. */
const JUDGED_BY_HAND: Record<string, number> = {
  'contract/src/codec/unknown-members.ts': 1,
  'contract/src/coverage.ts': 5,
  'platform/src/announce.ts': 1,
  'platform/src/config/setting.ts': 1,
  'platform/src/kernel/http/writes.ts': 2,
  'platform/src/kernel/objects/object-store.ts': 1,
  'platform/src/kernel/processes/command-failure.ts': 1,
  'platform/src/kernel/sandbox/process/host-process.ts': 1,
  'platform/src/kernel/telemetry/redact.ts': 4,
  'platform/src/open-lease.ts': 1,
  'platform/src/services/code-interpreter/interpreter-images.ts': 1,
  'platform/src/services/gateway/guard-rails/redaction.ts': 3,
  'platform/src/services/memory/extraction/contradiction.ts': 14,
  'platform/src/services/memory/extraction/sentences.ts': 1,
  'platform/src/services/memory/extraction/statements.ts': 20,
  'platform/src/services/memory/extraction/transcript.ts': 1,
  'platform/src/services/policy/decisions/policy-set.ts': 1,
  'platform/src/services/policy/generations/generating.ts': 1,
  'platform/src/services/policy/guardrails/built-in.ts': 13,
  'platform/src/services/runtime/egress.ts': 1,
  'platform/src/services/runtime/invoke.ts': 1,
};

/** Ambiguous, for texts that only the operator or a program of the host writes. */
const OF_THE_OPERATOR = [
  'platform/src/config/telemetry.ts',
  'platform/src/kernel/images/architecture.ts',
  'platform/src/kernel/sandbox/oci/runtime-cli.ts',
];

/** The regular expressions of a source text. */
function literals(source: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node)) found.push(node.text);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile('x.ts', source, ts.ScriptTarget.Latest, true));
  return found;
}

/** Whether it may take longer than linear time; undefined where that cannot be told. */
function isAmbiguous(literal: string): boolean | undefined {
  try {
    return !takesLinearTime(literal.slice(1, literal.lastIndexOf('/')));
  } catch {
    return undefined;
  }
}

const cwd = join(import.meta.dirname, '../..');
const ALL = globSync('{platform,contract,sdk}/src/**/*.ts', { cwd })
  .filter((path) => !/[.]test[.]ts$|testing\//.test(path))
  .flatMap((path) => literals(readFileSync(join(cwd, path), 'utf8')).map((literal) => ({ path, literal })));

const filesOf = (found: typeof ALL): Record<string, number> =>
  Object.fromEntries([...Map.groupBy(found, ({ path }) => path)].map(([path, those]) => [path, those.length]));

it('finds a regular expression that trims, and leaves others alone', () => {
  const source = String.raw`a(/\/+$/); b(/[.!? ]+$/u); c(/\s*$/); d(/^\/+$/); e(/\/$/); f(/x+y$/); g(/\s+/g)`;
  expect(literals(source).filter((one) => RUN_AT_END.test(one))).toEqual([
    String.raw`/\/+$/`,
    '/[.!? ]+$/u',
    String.raw`/\s*$/`,
  ]);
});

it('finds a regular expression that can be read in many ways, and leaves others alone', () => {
  // What read a member of baggage once, shortened: a blank behind an empty value is of the value, or of what comes after it.
  expect(isAmbiguous(String.raw`/^\w+=\w*([ ]*;[ ]*\w+([ ]*=[ ]*\w*)?)*$/`)).toBe(true);
  expect(isAmbiguous(String.raw`/^\w+=\w*(;\w+(=\w*)?)*$/`)).toBe(false);
  expect(isAmbiguous('/^(a+)+$/')).toBe(true);
  expect(isAmbiguous('/^a+b+$/')).toBe(false);
  expect(isAmbiguous('/a(?=b)/')).toBeUndefined();
});

it('nothing in the server trims by a regular expression', () => {
  expect(ALL.length).toBeGreaterThan(200);
  expect(ALL.filter(({ literal }) => RUN_AT_END.test(literal))).toEqual([]);
});

it('every regular expression of the server takes linear time', () => {
  expect(filesOf(ALL.filter(({ literal }) => isAmbiguous(literal) === undefined))).toEqual(JUDGED_BY_HAND);
  const ambiguous = ALL.filter(({ path, literal }) => isAmbiguous(literal) && !OF_THE_OPERATOR.includes(path));
  expect(ambiguous).toEqual([]);
});
