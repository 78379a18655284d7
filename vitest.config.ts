import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: [
      'packages/*/src/**/*.test.ts',
      'packages/*/test/**/*.test.ts',
      'scripts/**/*.test.ts',
      'tests/**/*.test.ts',
    ],
    exclude: ['**/node_modules/**'],
    setupFiles: ['scripts/test/own-environment.ts'],
    pool: 'forks',
    maxWorkers: 2,
    minWorkers: 1,
    testTimeout: 180_000,
    hookTimeout: 240_000,
    // A machine that is busy is no failure: what is waited for may take its time.
    expect: { poll: { timeout: 60_000 } },
  },
});
