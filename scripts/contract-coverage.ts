import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import {
  type CoverageReport,
  coverageReport,
  coverageVariable,
  drivenOperations,
} from '../packages/contract/src/index.ts';
import { notImplemented } from '../packages/platform/src/not-implemented.ts';
import { recordedLines } from './test/driven-operations.ts';

/**
 * `npm run contract:coverage [-- --json]`: how much of the contract is served, per piece. An operation counts when it is
 * implemented and the last `npm test` drove it to a 2xx answer through a real SDK; the servers under test noted that.
 */
const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } } });
const folder = process.env[coverageVariable] ?? fileURLToPath(new URL('../.cache/contract-coverage', import.meta.url));

function table(report: CoverageReport): string {
  const rows = Object.entries(report.pieces).map(([piece, { served, total, undriven }]) => {
    const waiting = undriven.length > 0 ? `   built, not driven by an SDK: ${undriven.join(', ')}` : '';
    return `${piece.padEnd(28)}${String(served).padStart(4)} / ${String(total).padStart(3)}${waiting}`;
  });
  const sum = `${'all'.padEnd(28)}${String(report.served).padStart(4)} / ${String(report.total).padStart(3)}`;
  return [...rows, sum, ''].join('\n');
}

const lines = recordedLines(folder);
const report = coverageReport(drivenOperations(lines), new Set(notImplemented));
process.stdout.write(values.json ? `${JSON.stringify(report, undefined, 2)}\n` : table(report));
if (lines.length === 0) {
  process.stderr.write('No test run has been recorded yet, so nothing counts as served: run `npm test` first.\n');
}
