// Packs the two published corpora into the fixtures beside this file, so that tests need neither Rust nor a network:
//   node collect.mjs CEDAR DOGWOOD
// CEDAR:   a checkout of cedar-policy/cedar-integration-tests with corpus-tests.tar.gz unpacked in it
// DOGWOOD: the unpacked crate dogwood-language
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';

const [cedar, dogwood] = process.argv.slice(2);
if (!cedar || !dogwood) throw new Error('Usage: node collect.mjs CEDAR DOGWOOD');

const text = (...path) => readFileSync(join(...path), 'utf8');
const optional = (...path) => (existsSync(join(...path)) ? text(...path) : undefined);
/** JSON with its integers of 64 bits as they are written: JavaScript's numbers do not hold them all. */
const exact = (source) =>
  JSON.parse(source, (_name, value, context) =>
    Number.isInteger(value) && !Number.isSafeInteger(value) ? JSON.rawJSON(context.source) : value,
  );
const named = (folder, head, tail) =>
  readdirSync(folder)
    .filter((name) => name.startsWith(head) && name.endsWith(tail))
    .sort();

function cedarCases() {
  const folders = ['corpus-tests', ...readdirSync(join(cedar, 'tests')).map((name) => `tests/${name}`)];
  return folders.flatMap((folder) =>
    named(join(cedar, folder), '', '.json')
      .filter((name) => !name.endsWith('.entities.json'))
      .map((name) => {
        const test = exact(text(cedar, folder, name));
        return {
          name: `${folder}/${name.slice(0, -5)}`,
          policies: text(cedar, test.policies),
          schema: text(cedar, test.schema),
          entities: exact(text(cedar, test.entities)),
          shouldValidate: test.shouldValidate,
          requests: test.requests.map(({ description, ...request }) => request),
        };
      }),
  );
}

function dogwoodCases() {
  const tests = join(dogwood, 'tests');
  const shared = text(tests, 'passing/temporal_only/shared_schema.cedarschema');
  // Without an event schema of its own a case is of the one that pins nothing, as in the crate's own tests.
  const unpinned = text(dogwood, 'configuration/event-schemas/unpinned.dwschema');
  const rooms = ['passing/temporal_only', 'passing/macros', 'passing/mixed', 'expected_failures'];
  return rooms.flatMap((room) =>
    readdirSync(join(tests, room, 'corpus'))
      .sort()
      .map((name) => {
        const folder = join(tests, room, 'corpus', name);
        return {
          name: `${room}/${name}`,
          rejected: room === 'expected_failures',
          // Providers run scripts there; here the platform answers for them.
          providers: existsSync(join(folder, 'providers.json')),
          policies: named(folder, 'policy_', '.dw')
            .map((file) => text(folder, file))
            .join('\n'),
          schema: optional(folder, 'schema.cedarschema') ?? shared,
          eventSchema: optional(folder, 'event.dwschema') ?? unpinned,
          macros: optional(folder, 'macros.dw'),
          traces: named(folder, 'trace_', '.log')
            .map((file) => ({
              log: text(folder, file),
              expected: optional(folder, `expected_${file.slice(6, -4)}.out`),
            }))
            .filter(({ expected }) => expected !== undefined),
        };
      }),
  );
}

for (const [name, cases] of [
  ['cedar', cedarCases()],
  ['dogwood', dogwoodCases()],
]) {
  const lines = Buffer.from(cases.map((one) => JSON.stringify(one)).join('\n'));
  const packed = brotliCompressSync(lines, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 10, [constants.BROTLI_PARAM_LGWIN]: 24 },
  });
  writeFileSync(new URL(`${name}.jsonl.br`, import.meta.url), packed);
  process.stdout.write(`${name}: ${cases.length} cases, ${lines.length} bytes, packed ${packed.length}\n`);
}
