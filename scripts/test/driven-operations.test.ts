import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CoverageEntry, coverageRecorder, type OperationName, operations } from '@agentplatform/contract';
import { describe, expect, it } from 'vitest';
import { operationsTally, recordedLines } from './driven-operations.ts';
import { closingLine, report } from './tally.ts';

const notImplemented = ['CreateGateway', 'GetGateway'] as const;
const built = (Object.keys(operations) as OperationName[]).filter(
  (name) => !(notImplemented as readonly string[]).includes(name),
);
const js = 'aws-sdk-js/3.1141.0 ua/2.1 os/linux lang/js';

/** As the servers under test note it: every built operation driven by an SDK, but for what is said of some. */
function lines(others: Partial<Record<OperationName, Partial<CoverageEntry> | undefined>> = {}): string[] {
  const noted: string[] = [];
  const record = coverageRecorder((line) => noted.push(line));
  for (const operation of built) {
    if (operation in others && others[operation] === undefined) continue;
    record({ operation, userAgent: js, status: 200, ...others[operation] });
  }
  return noted;
}

const check = (noted: string[], sandboxes = true) => operationsTally(noted, { notImplemented, sandboxes });

describe('operations that tests drove', () => {
  it('passes when an SDK drove all that is built', () => {
    expect(closingLine(check(lines()))).toBe('1 passed, 0 failed, 0 skipped');
  });

  it.each([
    ['nobody called', undefined],
    ['only a client that is no SDK called', { userAgent: 'curl/8.5.0' }],
    ['was refused each time', { status: 404 }],
  ])('fails with the name of one that %s, and what to do', (_, entry) => {
    const tally = check(lines({ GetMemory: entry, ListTagsForResource: undefined }));
    expect(closingLine(tally)).toBe('0 passed, 1 failed, 0 skipped');
    expect(report(tally)).toMatch(/FAILED:\n .*not GetMemory, ListTagsForResource\n .*Add a test .*not declare it/);
  });

  it('fails when no server noted anything', () => {
    expect(check([]).failed).toBe(1);
  });

  it('is skipped by name where the tests of sandboxes are', () => {
    const tally = check(lines({ InvokeAgentRuntime: undefined }), false);
    expect(closingLine(tally)).toBe('0 passed, 0 failed, 1 skipped');
    expect(report(tally)).toMatch(/needs root[\s\S]*not InvokeAgentRuntime/);
  });

  it('reads what the servers wrote, and nothing where there was none', () => {
    const folder = mkdtempSync(join(tmpdir(), 'agentplatform-driven-'));
    const [first = '', ...rest] = lines();
    writeFileSync(join(folder, '1.jsonl'), first);
    writeFileSync(join(folder, '2.jsonl'), rest.join(''));
    const read = recordedLines(folder);
    rmSync(folder, { recursive: true });
    expect(check(read)).toMatchObject({ passed: 1, failed: 0 });
    expect(recordedLines(folder)).toEqual([]);
  });
});
