import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fetchedOnce } from '../../scripts/test/fetched-once.ts';
import { pipInstall } from '../../scripts/test/python-packages.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const PACKAGES = ['bedrock-agentcore==1.25.0', 'strands-agents==1.62.0', 'langgraph-checkpoint-aws==1.2.6'];

const folder = await fetchedOnce({
  name: `python-memory-${PACKAGES.map((each) => each.split('==')[1]).join('-')}`,
  what: `the frameworks with the vendor's memory (${PACKAGES.join(', ')})`,
  fill: (into) => pipInstall(into, ...PACKAGES),
});
let platform: TestPlatform;

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--memory-extraction-delay-seconds', '0.2'] });
});
afterAll(() => platform?.dispose());

describe.skipIf(!folder)('the vendor’s memory for frameworks, unmodified', () => {
  it('keeps sessions and facts of Strands agents, and checkpoints and facts of LangGraph graphs', async () => {
    const run = promisify(execFile)('python3', [join(import.meta.dirname, 'memory_frameworks.py')], {
      env: { ...process.env, ...platform.env, PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1' },
      timeout: 240_000,
    });
    run.child.stdin?.end(JSON.stringify({ region: platform.ready.region }));
    const { stdout } = await run;
    expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toEqual({
      strands_first: 'Shown 1; recalled nothing',
      strands_same_session: 2,
      strands_recalls: expect.stringMatching(/^Shown 1; recalled .*allergic to hazelnuts/),
      // What was recalled is not extracted again.
      strands_records: ['I am allergic to hazelnuts.'],
      langgraph: ['one', 'shown 1', 'two', 'shown 3'],
      langgraph_history: 6,
      langgraph_other: {},
      langgraph_store: ['I own two dogs.'],
      langgraph_item: 'I own two dogs.',
    });
  }, 280_000);
});
