import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const checks = ['format', 'lint', 'types', 'dead code', 'house rules'];

it.each(checks)('npm run check: %s', { timeout: 180_000 }, async (name) => {
  const script = fileURLToPath(new URL('check.ts', import.meta.url));
  const { status, output } = await new Promise<{ status: number | null; output: string }>((resolve) => {
    const child = execFile(process.execPath, [script, name], { maxBuffer: 2 ** 26 }, (_error, stdout) =>
      resolve({ status: child.exitCode, output: stdout }),
    );
  });
  expect(status, output).toBe(0);
});
