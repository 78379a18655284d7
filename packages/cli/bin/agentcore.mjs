#!/usr/bin/env node
// Runs on any Node from 18: the sources are TypeScript, which only newer ones strip, so an older Node hands over to the
// pinned one of this workspace.
import { spawn } from 'node:child_process';
import * as modules from 'node:module';
import { constants, homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const main = new URL('../src/main.ts', import.meta.url);
if (process.features.typescript && process.versions.node.split('.')[0] >= 24) {
  // Halves the time to start. Not the default folder, which is in /tmp, where others could put code for us to run.
  delete process.env.AGENTCORE_HANDED_OVER;
  modules.enableCompileCache(join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'agentcore'));
  await import(main.href);
} else {
  if (process.env.AGENTCORE_HANDED_OVER) throw new Error(`the pinned Node is too old: ${process.version}`);
  let node;
  try {
    node = modules.createRequire(import.meta.url).resolve(`node-${process.platform}-${process.arch}/bin/node`);
  } catch {
    console.error(
      `agentcore needs Node 24 (this is ${process.version}). Run "npm install" where it is installed, or use Node 24.`,
    );
    process.exit(1);
  }
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: 'inherit',
    env: { ...process.env, AGENTCORE_HANDED_OVER: '1' },
  });
  // A terminal sends Ctrl-C to both, a supervisor its signal to this one alone; the child decides how to end.
  process.on('SIGINT', () => {
    if (!process.stdin.isTTY) child.kill('SIGINT');
  });
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  child.on('exit', (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
}
