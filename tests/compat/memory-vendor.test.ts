import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { vendorPython } from '../support/vendor-python.ts';

const folder = await vendorPython();
let platform: TestPlatform;

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--memory-extraction-delay-seconds', '0.2'] });
});
afterAll(() => platform?.dispose());

describe.skipIf(!folder)('the vendor’s MemoryClient and MemorySessionManager, and boto3, unmodified', () => {
  it('drive the whole of memory', async () => {
    const run = promisify(execFile)('python3', [join(import.meta.dirname, 'memory_vendor.py')], {
      env: { ...process.env, ...platform.env, PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1' },
      timeout: 240_000,
    });
    run.child.stdin?.end(JSON.stringify({ region: platform.ready.region }));
    const { stdout } = await run;
    const text = stdout.trim().split('\n').at(-1) ?? '';
    expect(JSON.parse(text)).toEqual({
      status: 'ACTIVE',
      again: true,
      strategies: [
        ['facts', 'SEMANTIC'],
        ['sums', 'SUMMARIZATION'],
        ['likes', 'USER_PREFERENCE'],
        ['episodes', 'EPISODIC'],
        ['own', 'CUSTOM'],
      ],
      left: ['facts', 'sums', 'likes', 'episodes'],
      listed: true,
      events: true,
      blob: { kept: [1, 2.5, null] },
      turns: [['I love jazz concerts.', 'Nice.']],
      branches: ['main', 'other'],
      branch: 2,
      tree: ['other'],
      merged: ['I live in Berlin with my sister.', 'Noted.', 'I live in Rome.'],
      waited: true,
      likes: ['I love jazz concerts.'],
      nowhere: [],
      turn: 'True',
      manager_turns: [['I own two dogs.'], ['I work at Initech in Austin.', 'Fine.']],
      manager_event: true,
      manager_branches: ['fork', 'main'],
      manager_filtered: 1,
      actors: ['jane', 'tom'],
      sessions: ['t1'],
      manager_found: true,
      record: true,
      record_gone: true,
      paginated: true,
      updated: 'zero',
      deleted: 5,
      jobs: [],
      ingested: ['I play chess in Oslo.'],
      no_job: 'ResourceNotFoundException',
      no_memory: 'ResourceNotFoundException',
      listed_after: false,
    });
  }, 280_000);
});
