#!/usr/bin/env node
// Entry of every npm script. This file and bootstrap/ are the only code that must run on any Node >= 18: they make
// the checkout and the machine ready and then hand over to the pinned Node, which runs TypeScript directly.
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const major = Number(process.versions.node.split('.')[0]);

if (major < 18) {
  process.stderr.write(
    `Node ${process.versions.node} is too old: 18 or newer is needed to begin with (the rest brings its own Node 24).\n` +
      'On Debian 12 or Ubuntu 24.04: sudo apt-get install nodejs npm\n',
  );
  process.exitCode = 1;
} else {
  // Imported only now, so that an older Node meets the sentence above and not a syntax error.
  const { bootstrap } = await import('./bootstrap/index.mjs');
  const status = await bootstrap(root, process.argv.slice(2));
  // What was interrupted may still wait for a lock.
  if (status >= 128) process.exit(status);
  process.exitCode = status;
}
