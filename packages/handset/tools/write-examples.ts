// Writes client/examples from tools/client-examples.ts: node tools/write-examples.ts
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { CLIENT_EXAMPLES, exampleIndex, examplePage } from './client-examples.ts';

const folder = path.resolve(import.meta.dirname, '../client/examples');
mkdirSync(folder, { recursive: true });
writeFileSync(path.join(folder, 'index.html'), exampleIndex());
for (const example of CLIENT_EXAMPLES) writeFileSync(path.join(folder, `${example.name}.html`), examplePage(example));
