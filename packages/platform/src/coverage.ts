import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type CoverageEntry, coverageRecorder, coverageVariable } from '@agentplatform/contract';

/** Notes which operations tests have driven, where the environment names a directory for it; undefined everywhere else. */
export function operationCoverage(env: NodeJS.ProcessEnv): ((entry: CoverageEntry) => void) | undefined {
  const directory = env[coverageVariable];
  if (!directory) return undefined;
  mkdirSync(directory, { recursive: true });
  const file = join(directory, `${process.pid}.jsonl`);
  return coverageRecorder((line) => appendFileSync(file, line));
}
