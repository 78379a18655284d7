#!/usr/bin/env node
// Runs on any Node from 18: the sources are TypeScript, which only newer ones strip, so an older Node hands over to the
// pinned one of this workspace.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

const main = new URL('../src/main.ts', import.meta.url);
if (process.features.typescript && process.versions.node.split('.')[0] >= 24) {
  await import(main.href);
} else {
  let node;
  try {
    node = createRequire(import.meta.url).resolve('node/bin/node');
  } catch {
    console.error(
      `agentcore needs Node 24 (this is ${process.version}). Run "npm install" where it is installed, or use Node 24.`,
    );
    process.exit(1);
  }
  const child = spawn(node, [fileURLToPath(main), ...process.argv.slice(2)], { stdio: 'inherit' });
  // The terminal sends Ctrl-C to both; the child decides how to end.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  child.on('exit', (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
}
