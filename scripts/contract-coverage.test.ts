import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { coverageRecorder, coverageVariable } from '@agentplatform/contract';
import { afterAll, expect, it } from 'vitest';

const run = promisify(execFile);
const folder = await mkdtemp(join(tmpdir(), 'agentplatform-coverage-'));
afterAll(() => rm(folder, { recursive: true, force: true }));

const coverage = (...args: string[]) =>
  run(process.execPath, [join(import.meta.dirname, 'contract-coverage.ts'), ...args], {
    env: { ...process.env, [coverageVariable]: folder },
  });

it('says what is built where no test has run, and what is driven once one has', async () => {
  const fresh = await coverage();
  expect(fresh.stdout).toMatch(/^piece +built +driven +missing +total$/m);
  expect(fresh.stdout).toMatch(/^memories +21 +– +0 +21$/m);
  expect(fresh.stdout).toMatch(/^web-search +0 +– +1 +1$/m);
  expect(fresh.stderr).toContain('No test run is recorded');

  let line = '';
  coverageRecorder((text) => {
    line = text;
  })({ operation: 'GetMemory', userAgent: 'aws-sdk-js/3.1141.0', status: 200 });
  await writeFile(join(folder, '1.jsonl'), line);
  const driven = await coverage();
  expect(driven.stdout).toMatch(/^memories +21 +1 +0 +21 +not driven: .*DeleteMemory/m);
  expect(JSON.parse((await coverage('--json')).stdout).pieces.memories).toMatchObject({ built: 21, driven: 1 });
});
