import { writeFileSync } from 'node:fs';
import { generatedPages, pagePath } from './docs/pages.ts';
import { endWithOwner } from './end-with-owner.ts';

endWithOwner();
for (const [page, text] of Object.entries(generatedPages())) {
  writeFileSync(pagePath(page), text);
  process.stdout.write(`${page}\n`);
}
