import { operations } from './generated/operations.ts';
import type { OperationName } from './generated/types.ts';

/** One answered request as the server notes it while tests run: a line of JSON in the coverage directory. */
export interface CoverageEntry {
  operation: OperationName;
  userAgent: string;
  status: number;
}

/** Environment variable that names the directory; the server records only where it is set. */
export const coverageVariable = 'AGENTPLATFORM_COVERAGE_DIR';

/** SDKs that were written elsewhere: driving an operation through one of them is what counts. */
const sdks = [
  /\baws-sdk-js\/3\./,
  /\bBoto3\/1\./,
  /\bBotocore\/1\./,
  /\baws-cli\/2\./,
  /\baws-sdk-(?:java|go|go-v2|rust|dotnet|php|ruby|kotlin)\//,
];

/** Whether a user agent is that of a published SDK. */
export function isRealSdk(userAgent: string): boolean {
  return sdks.some((sdk) => sdk.test(userAgent.slice(0, 1024)));
}

/** Makes the function with which a server notes answered requests; `append` gets whole lines. */
export function coverageRecorder(append: (line: string) => void): (entry: CoverageEntry) => void {
  return ({ operation, userAgent, status }) => append(`${JSON.stringify({ operation, userAgent, status })}\n`);
}

/** How far one piece, or all of them, is built. Every operation is either built or missing. */
export interface PieceCoverage {
  total: number;
  /** Operations that are implemented, whether or not tests drove them. */
  built: number;
  /** Operations that are implemented and that a real SDK drove to a good answer in the recorded tests. */
  driven: number;
  /** Operations that answer 501. */
  missing: number;
  /** Names of those that are built and that no SDK has driven. */
  undriven: OperationName[];
  /** Names of those that are missing. */
  notImplemented: OperationName[];
}

export interface CoverageReport extends PieceCoverage {
  pieces: Record<string, PieceCoverage>;
}

/** Operations that a real SDK has driven to a 2xx answer, from recorded lines; lines that are no entries are passed over. */
export function drivenOperations(lines: Iterable<string>): Set<OperationName> {
  const driven = new Set<OperationName>();
  for (const line of lines) {
    const { operation, userAgent, status } = parseEntry(line) ?? {};
    if (operation === undefined || typeof userAgent !== 'string' || typeof status !== 'number') continue;
    if (status >= 200 && status < 300 && isRealSdk(userAgent)) driven.add(operation);
  }
  return driven;
}

function parseEntry(line: string): Partial<CoverageEntry> | undefined {
  try {
    const entry: unknown = JSON.parse(line);
    if (typeof entry !== 'object' || entry === null || !('operation' in entry)) return undefined;
    return typeof entry.operation === 'string' && Object.hasOwn(operations, entry.operation)
      ? (entry as CoverageEntry)
      : undefined;
  } catch {
    return undefined;
  }
}

/** Counts operations of AgentCore per piece: what is built, what of it a real SDK has driven, and what is missing. */
export function coverageReport(
  driven: ReadonlySet<OperationName>,
  notImplemented: ReadonlySet<OperationName>,
): CoverageReport {
  const empty = (): PieceCoverage => ({
    total: 0,
    built: 0,
    driven: 0,
    missing: 0,
    undriven: [],
    notImplemented: [],
  });
  const pieces: Record<string, PieceCoverage> = {};
  const all = empty();
  for (const { name, piece, plane } of Object.values(operations)) {
    if (plane === 'models') continue;
    pieces[piece] ??= empty();
    for (const count of [pieces[piece], all]) {
      count.total++;
      if (notImplemented.has(name)) {
        count.missing++;
        count.notImplemented.push(name);
        continue;
      }
      count.built++;
      if (driven.has(name)) count.driven++;
      else count.undriven.push(name);
    }
  }
  return { ...all, pieces: Object.fromEntries(Object.entries(pieces).sort(([a], [b]) => (a < b ? -1 : 1))) };
}
