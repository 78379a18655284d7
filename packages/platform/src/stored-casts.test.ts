import { globSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { allMigrations } from './migrations.ts';
import { loadServices } from './open-services.ts';
import { services } from './services.ts';
import { sourceProgram } from './testing/source-program.ts';
import { StoredCasts } from './testing/stored-casts.ts';

const SOURCE = import.meta.dirname;
const ROOT = resolve(SOURCE, '../../..');
const files = globSync('**/*.ts', { cwd: SOURCE }).filter((path) => !/[.]test[.]|testing\//.test(path));

/** JSON that is not stored, by the file that takes it for a type: whose words these are. */
const HEARD: Record<string, string> = {
  'kernel/embeddings/sentence-model.ts': 'files of a model, each member of which is looked at behind it',
  'kernel/telemetry/pretty.ts': 'a line of the log, to be shown',
  'services/browser/cdp-client.ts': 'messages of Chromium',
  'services/browser/recording/recorded-entry.ts':
    'messages of programs to Chromium, each member of which is looked at behind it',
  'services/code-interpreter/kernel-host.ts': 'lines of the program in the sandbox',
  'services/gateway/targets/connectors/connector.ts': 'an answer that is made there',
  'services/harness/tools/browser-page.ts': 'messages of Chromium',
  'services/packages/npm-package.ts': 'what the build beside it has written',
};

const DECLARED = `
  import type { Database } from './kernel/storage/index.ts';
  import { list, storedText, text } from './kernel/stored-shape.ts';
  declare const database: Database;
  declare const json: string;
  interface Kept { name: string }
  interface Row { data: unknown; name: string }
  `;

const CAST: [what: string, source: string][] = [
  ['JSON that is cast', 'export const kept = JSON.parse(json) as Kept;'],
  ['JSON in a variable of a type', 'export const kept: Kept = JSON.parse(json);'],
  ['JSON that is opened', 'export const { name } = JSON.parse(json);'],
  ['a member of JSON', 'export const name = JSON.parse(json).name;'],
  ['JSON that is returned as a type', 'export function read(): Kept { return JSON.parse(json); }'],
  ['JSON that is handed on as a type', 'declare function use(kept: Kept): void; use(JSON.parse(json));'],
  ['a column by the word of a type', `await database.query<{ data: Kept }>('SELECT data');`],
  ['a list in a column by the word of a type', `await database.query<{ tags: string[] }>('SELECT tags');`],
  ['an object of another name', `await database.query<{ other: Kept }>('SELECT x AS other');`],
  ['a column that is cast', `for (const row of await database.query<Row>('')) console.log(row.data as Kept);`],
  [
    'a column that is cast behind its name',
    `for (const { data } of await database.query<Row>('')) console.log(data as Kept);`,
  ],
];

const READ: [what: string, source: string][] = [
  ['JSON that is read by a shape', 'export const kept = storedText(list(text), json);'],
  ['JSON that is unknown', 'export const kept: unknown = JSON.parse(json);'],
  [
    'JSON that may be any',
    `import type { DocumentValue } from '@agentplatform/contract'; export const kept: DocumentValue = JSON.parse(json);`,
  ],
  ['JSON whose error alone is wanted', 'JSON.parse(json);'],
  [
    'columns of plain types',
    `await database.query<{ name: string; at: Date | null; names: string[]; of: unknown }>('SELECT x');`,
  ],
  [
    'a column that a shape reads',
    `for (const { data } of await database.query<Row>('')) console.log(list(text)(data, ''));`,
  ],
];

const texts = [...CAST, ...READ].map(([, source], at): [string, string] => [
  join(SOURCE, `cast-or-not-${at}.ts`),
  `${DECLARED}${source}`,
]);
const modules = (await loadServices(services)).map(({ module }) => module);
const columns = allMigrations(modules).flatMap(({ sql }) =>
  [...sql.matchAll(/(\w+) jsonb\b(?! :=)/g)].map(([, name = '']) => name),
);
const casts = new StoredCasts(
  sourceProgram(
    ROOT,
    files.map((path) => join(SOURCE, path)),
    new Map(texts),
  ),
  new Set(columns),
);
const inText = (at: number): string[] => casts.in(texts[at]?.[0] ?? '');

describe('what finds casts in place of a shape', () => {
  it.each(CAST.map(([what], at): [string, number] => [what, at]))('finds %s', (_what, at) => {
    expect(inText(at)).toHaveLength(1);
  });

  it.each(READ.map(([what], at): [string, number] => [what, at]))('leaves %s alone', (_what, at) => {
    expect(inText(CAST.length + at)).toEqual([]);
  });
});

it('stored JSON is never taken for a type: rows, jobs, records, files and what is sealed are read by a shape', () => {
  expect(columns).toEqual(expect.arrayContaining(['data', 'tags', 'metadata']));
  const found = files.flatMap((path) => casts.in(join(SOURCE, path)).map((one) => `${path}:${one}`));
  const fileOf = (one: string): string => one.slice(0, one.indexOf(':'));
  expect(found.filter((one) => !(fileOf(one) in HEARD))).toEqual([]);
  expect([...new Set(found.map(fileOf))].sort()).toEqual(Object.keys(HEARD));
});
