import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { configurationDocs } from '../packages/platform/src/config/describe.ts';
import { settings } from '../packages/platform/src/config.ts';

/** Pages that are made from code; a test beside each source says when one is out of date. */
const pages: Record<string, () => string> = {
  'docs/configuration.md': () => configurationDocs(settings),
};

for (const [path, make] of Object.entries(pages)) {
  writeFileSync(fileURLToPath(new URL(`../${path}`, import.meta.url)), make());
  process.stdout.write(`${path}\n`);
}
