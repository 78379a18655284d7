import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { withProgress } from './bootstrap/progress.mjs';
import { endWithOwner } from './end-with-owner.ts';

/** What is checked, each by a command whose status says whether it holds. */
const checks = {
  format: ['biome', 'format', '.'],
  lint: ['biome', 'lint', '--error-on-warnings', '.'],
  types: ['tsc', '--project', '.'],
  'dead code': ['knip', '--no-progress'],
  'house rules': [
    'depcruise',
    '--config',
    '.dependency-cruiser.mjs',
    '--output-type',
    'err-long',
    'packages',
    'scripts',
  ],
};

interface Result {
  name: string;
  ok: boolean;
  seconds: number;
  output: string;
}

const usage = `Usage: npm run check [-- --json] [${Object.keys(checks).join(' | ')} …]\n`;

endWithOwner();
process.exitCode = await check(process.argv.slice(2));

async function check(args: string[]): Promise<number> {
  const json = args.includes('--json');
  const wanted = args.filter((word) => word !== '--json');
  const unknown = wanted.filter((word) => !Object.hasOwn(checks, word));
  if (unknown.length > 0) {
    process.stderr.write(usage);
    return unknown[0] === '--help' ? 0 : 2;
  }
  const results: Result[] = [];
  // One after the other: each of them uses all the processors it can get.
  for (const [name, command] of Object.entries(checks)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const result = await withProgress(`Checking ${name}`, () => run(name, command));
    results.push(result);
    if (!json && !result.ok) process.stdout.write(`\n── ${name} ──\n${result.output.trim()}\n\n`);
  }
  const ok = results.every((result) => result.ok);
  if (json) process.stdout.write(`${JSON.stringify({ ok, checks: results }, undefined, 2)}\n`);
  else for (const result of results) process.stdout.write(`${result.ok ? '✓' : '✗'} ${result.name}\n`);
  return ok ? 0 : 1;
}

function run(name: string, [command = '', ...args]: string[]): Promise<Result> {
  const began = performance.now();
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: fileURLToPath(new URL('..', import.meta.url)),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output += text));
    const settle = (ok: boolean): void =>
      resolve({ name, ok, seconds: Math.round((performance.now() - began) / 100) / 10, output });
    child.on('error', (error) => {
      output += error.message;
      settle(false);
    });
    child.on('close', (status) => settle(status === 0));
  });
}
