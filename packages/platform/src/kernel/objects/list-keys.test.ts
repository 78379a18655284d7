import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keyToPath } from './key-path.ts';
import { listKeys } from './list-keys.ts';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'agentplatform-list-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

const words = fc.constantFrom('a', 'b', '/', '-', '0', '~', 'é', '𝕏', '\uffee', 'x'.repeat(80));
const keys = fc.array(words, { minLength: 1, maxLength: 5 }).map((parts) => parts.join(''));
const compare = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** What S3 documents, without any file. */
function naive(all: string[], options: { prefix: string; delimiter: string; startAfter: string }): string[] {
  const { prefix, delimiter, startAfter } = options;
  const items: string[] = [];
  for (const key of all.filter((one) => one.startsWith(prefix) && compare(one, startAfter) > 0)) {
    const at = delimiter ? key.indexOf(delimiter, prefix.length) : -1;
    const item = at < 0 ? `key ${key}` : `prefix ${key.slice(0, at + delimiter.length)}`;
    if (items.at(-1) !== item) items.push(item);
  }
  return items;
}

test('pages together are what a naive reading of all keys gives, whatever the keys, the prefix and the size of a page', async () => {
  let round = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(keys, { maxLength: 25 }),
      fc.oneof(fc.constant(''), words, keys),
      fc.constantFrom('', '/', '-', 'a/', 'é'),
      fc.oneof(fc.constant(''), keys),
      fc.integer({ min: 1, max: 7 }),
      async (all, prefix, delimiter, startAfter, limit) => {
        const directory = join(root, String(round++));
        for (const key of all) {
          const path = join(directory, ...keyToPath(key));
          await mkdir(dirname(path), { recursive: true });
          await writeFile(path, '');
        }
        const seen: string[] = [];
        for (let token: string | undefined, pages = 0; pages < 40; pages++) {
          const page = await listKeys(directory, { prefix, delimiter, startAfter, token, limit });
          expect(page.items.length).toBeLessThanOrEqual(limit);
          for (const item of page.items) {
            seen.push(item.kind === 'key' ? `key ${item.found.key}` : `prefix ${item.prefix}`);
          }
          token = page.next;
          if (token === undefined) break;
        }
        expect(seen).toEqual(naive([...all].sort(compare), { prefix, delimiter, startAfter }));
      },
    ),
    { numRuns: 150 },
  );
});
