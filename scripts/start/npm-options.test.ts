import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { configHelp } from '../../packages/platform/src/config.ts';
import { keptByNpm } from './npm-options.ts';

const flags = configHelp().match(/--[a-z][a-z-]*/g) ?? [];

/** What a script finds in its environment that npm starts with these words. */
function environmentOf(...words: string[]): NodeJS.ProcessEnv {
  const folder = mkdtempSync(join(tmpdir(), 'npm-options-'));
  try {
    writeFileSync(join(folder, 'tell.cjs'), 'console.log(JSON.stringify(process.env))');
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ scripts: { start: 'node tell.cjs' } }));
    const printed = execFileSync('npm', ['start', '--silent', ...words], {
      cwd: folder,
      encoding: 'utf8',
      stdio: 'pipe',
    });
    return JSON.parse(printed);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

it('says where options stand that npm has kept for itself', () => {
  expect(keptByNpm(flags, environmentOf('--port', '4101'))).toBe(
    'npm kept --port for itself. Write options of the platform after "--":\n  npm start -- --port …',
  );
  expect(keptByNpm(flags, environmentOf('--pool-max-per-version=3'))).toContain('--pool-max-per-version …');
  expect(keptByNpm(flags, environmentOf('--', '--port', '4101'))).toBeUndefined();
});
