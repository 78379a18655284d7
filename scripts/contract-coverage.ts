import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import {
  type CoverageReport,
  coverageReport,
  coverageVariable,
  drivenOperations,
  type PieceCoverage,
} from '../packages/contract/src/index.ts';
import { notImplemented } from '../packages/platform/src/not-implemented.ts';
import { recordedLines } from './test/driven-operations.ts';

/**
 * `npm run contract:coverage [-- --json]`: how far the contract is built, per piece. `built` is what the code serves; `driven` is what of it
 * the recorded tests drove to a 2xx answer through a real SDK; `missing` answers 501. The servers under test record what they answer.
 */
const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } } });
const folder = process.env[coverageVariable] ?? fileURLToPath(new URL('../.cache/contract-coverage', import.meta.url));

const widths = [28, 7, 8, 9, 7] as const;

function table(report: CoverageReport, recorded: boolean): string {
  const line = (name: string, ...cells: (string | number)[]): string =>
    [name.padEnd(widths[0]), ...cells.map((cell, index) => `${cell}`.padStart(widths[index + 1] ?? 0))].join('');
  const row = (name: string, { built, driven, missing, total }: PieceCoverage): string =>
    line(name, built, recorded ? driven : '–', missing, total);
  const rows = Object.entries(report.pieces).map(([name, piece]) => {
    const waiting = recorded && piece.undriven.length > 0 ? `   not driven: ${piece.undriven.join(', ')}` : '';
    return row(name, piece) + waiting;
  });
  return [line('piece', 'built', 'driven', 'missing', 'total'), ...rows, row('all', report), ''].join('\n');
}

const lines = recordedLines(folder);
const report = coverageReport(drivenOperations(lines), new Set(await notImplemented()));
process.stdout.write(values.json ? `${JSON.stringify(report, undefined, 2)}\n` : table(report, lines.length > 0));
if (lines.length === 0) {
  process.stderr.write(
    'No test run is recorded here, so nothing is known of what tests drive: `npm test` records it.\n',
  );
}
